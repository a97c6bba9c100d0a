# SPDX-License-Identifier: Apache-2.0
# Completion of commands, options and their values for muster, in bash. The tables are made of what the commands print
# with --help. Behind muster launch and muster supervise the options of the command that they start are completed.

declare -gA _muster_options _muster_values # -g: bash-completion reads this file in a function

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
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' i word
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]##*/}
		case $command:$word in
		launch:muster | supervise:muster) command='' ;;
		bench:run | bench:report) command=bench-$word ;;
		:*) command=$word ;;
		esac
	done
	COMPREPLY=()
	if [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $current == = ]]; then
		current=
	fi
	if [[ -z $command || $command == help ]]; then
		_muster_words "$_muster_commands" "$current"
	elif [[ $before == --* && -n ${_muster_values["$command $before"]-} ]]; then
		compopt -o filenames 2>/dev/null
		_muster_words "${_muster_values["$command $before"]}" "$current"
	elif [[ $current == -* ]]; then
		_muster_words "${_muster_options[$command]-}" "$current"
	else
		compopt -o filenames 2>/dev/null
		_muster_words file "$current"
	fi
}

