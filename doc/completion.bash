# SPDX-License-Identifier: Apache-2.0
# Completion of options and their values for the programs of Muster, in bash. The tables are made of what the programs
# print with --help. Behind mulaunch and musupervise the options of the program that they start are completed.

declare -A _muster_options _muster_values

# Words of a kind: _muster_words LIST CURRENT
_muster_words() {
	local word
	for word in $1; do
		case $word in
		file) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$2") ;;
		folder) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$2") ;;
		*) [[ $word == "$2"* ]] && COMPREPLY+=("$word") ;;
		esac
	done
}

_muster() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program i word
	program=${COMP_WORDS[0]##*/}
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]##*/}
		case $program:$word in
		mubench:run | mubench:report) program="mubench-$word" ;;
		mulaunch:* | musupervise:*) [[ -n ${_muster_options[$word]-} ]] && program=$word ;;
		esac
	done
	COMPREPLY=()
	if [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $current == = ]]; then
		current=
	fi
	if [[ $before == --* && -n ${_muster_values["$program $before"]-} ]]; then
		compopt -o filenames 2>/dev/null
		_muster_words "${_muster_values["$program $before"]}" "$current"
	elif [[ $current == -* ]]; then
		_muster_words "${_muster_options[$program]-}" "$current"
	else
		compopt -o filenames 2>/dev/null
		_muster_words file "$current"
	fi
}

