# SPDX-License-Identifier: Apache-2.0
# Tables for doc/completion.bash from what a command prints with --help (train: --help-all, then --info of the trainer):
#
#	muster COMMAND --help | awk -f doc/completion.awk -v name=COMMAND
#
# _muster_options[COMMAND] holds its options, _muster_values[COMMAND --option] the words that the option takes; file
# and folder stand for names of these.

function quote(text)
{
	gsub(/'/, "", text)
	return "'" text "'"
}

# "a, b, c" as "a b c"; "" if there is anything but single words, or fewer than least
function list(text, least, parts, n, i, all)
{
	n = split(text, parts, /, /)
	for (i = 1; i <= n; i++) {
		if (parts[i] !~ /^[-A-Za-z0-9_.]+$/)
			return ""
		all = all (i > 1 ? " " : "") parts[i]
	}
	return n >= least ? all : ""
}

# Choices stand at the end of a text, behind a colon, or are all of it. Of stores the text tells more.
function values_of(option, value, text, words, at, parts, n, i)
{
	if (option == "--kv-store") {
		n = split(text, parts, /[ ();]+/)
		for (i = 1; i <= n; i++)
			if (parts[i] ~ /^(local|device|dist_[a-z]+)$/ && !index(" " words " ", " " parts[i] " "))
				words = words (words == "" ? "" : " ") parts[i]
		return words
	}
	sub(/ *\(default.*/, "", text)
	at = match(text, /: [^:]*$/)
	words = list(at ? substr(text, at + 2) : text, at ? 2 : 3)
	if (words != "")
		return words
	if (value ~ /DIR|FOLDER/ || option == "--sync-dst-dir")
		return "folder"
	if (value !~ /\|/)
		return value ~ /FILE|PATH|^P$/ ? "file" : ""
	n = split(value, parts, "|")
	for (i = 1; i <= n; i++)
		words = words (i > 1 ? " " : "") (parts[i] ~ /^[A-Z]/ ? "file" : parts[i])
	return words
}

function end_option(words)
{
	if (option == "" || option in seen) # settings of several networks have one name
		return
	seen[option]
	options = options (options == "" ? "" : " ") option
	if (match(text, /off by --no-[a-z0-9-]+\)/))
		options = options " " substr(text, RSTART + 7, RLENGTH - 8)
	words = values_of(option, value, text)
	if (option != "--network" && words != "")
		printf "_muster_values[%s]=%s\n", quote(name " " option), quote(words)
	option = ""
}

# Does an option begin here? Further back stand texts, of which a line may begin with another option.
function is_option(line)
{
	return line ~ /^  +(-[A-Za-z], +)?--[a-z]/ && line !~ /^          /
}

is_option($0) {
	end_option()
	match($0, /--[-a-z0-9]+/)
	option = substr($0, RSTART, RLENGTH)
	text = substr($0, RSTART + RLENGTH)
	value = ""
	if (match(text, /^ [^ ]+/) && match(text, /^ [^ ]+( |$)/)) {
		value = substr(text, 2, RLENGTH - 1)
		sub(/ .*/, "", value)
		text = substr(text, RLENGTH + 1)
	}
	sub(/^ */, "", text)
	next
}

option != "" && /^          / {
	sub(/^ */, "")
	text = text (text == "" ? "" : " ") $0
	next
}

{ end_option() }

# Of --info.
sub(/^networks: /, "") {
	printf "_muster_values[%s]=%s\n", quote(name " --network"), quote($0 " file")
}

END {
	end_option()
	printf "_muster_options[%s]=%s\n", quote(name), quote(options)
}
