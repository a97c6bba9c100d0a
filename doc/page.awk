# SPDX-License-Identifier: Apache-2.0
# A manual page (mdoc) from what a program prints with --help: one text for both.
#
#	PROGRAM --help | awk -f doc/page.awk -v name=PROGRAM -v what="..." -v date="..." [-v more=FILE]
#
# The first line is "usage: ..."; then come paragraphs, lines that begin with two blanks, as they are, and headings
# "Words:" with options, "  --name VALUE  text", whose text goes on in lines that begin with more blanks.
# what: a line for apropos(1). more: a file of further sections in mdoc, behind these.

# A text as mdoc takes it: no macros, no escapes, plain quotes and hyphens.
function plain(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/`/, "\\(ga", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	if (text ~ /^[.']/)
		text = "\\&" text
	return text
}

# The same in an argument of a macro.
function word(text)
{
	text = plain(text)
	gsub(/"/, "\\(dq", text)
	return "\"\\&" text "\""
}

# A sentence a line.
function sentences(text, n, parts, i)
{
	n = split(text, parts, /\. /)
	for (i = 1; i <= n; i++)
		print plain(parts[i] (i < n ? "." : ""))
}

# Before text that is no option's; as_it_is: lines that are not joined.
function begin_text(as_it_is)
{
	end_list()
	if (!described)
		print ".Sh " (seen_options ? "NOTES" : "DESCRIPTION")
	else if (pending && !as_it_is)
		print ".Pp"
	described = 1
	pending = 0
}

function end_paragraph()
{
	if (paragraph != "")
		sentences(paragraph)
	paragraph = ""
	if (literal)
		print ".Ed"
	literal = 0
}

function end_option()
{
	if (option != "")
		sentences(option)
	option = ""
}

function end_list()
{
	end_option()
	if (listing) {
		print ".El"
		pending = 1
	}
	listing = 0
}

# "--name VALUE  text" or "-s, --name VALUE  text"
function begin_option(line, names, parts, n, i)
{
	end_option()
	if (!listing)
		print ".Bl -tag -width Ds"
	listing = 1
	sub(/^ */, "", line)
	names = line
	sub(/  .*/, "", names)
	option = substr(line, length(names) + 1)
	sub(/^ */, "", option)
	n = split(names, parts, / /)
	printf ".It"
	for (i = 1; i <= n; i++)
		printf parts[i] ~ /^-/ ? " Fl %s" : " Ar %s", word(parts[i] ~ /^-/ ? substr(parts[i], 2) : parts[i])
	print ""
}

# Does an option begin here? Further back stand texts, of which a line may begin with another option.
function is_option(line)
{
	return line ~ /^  +(-[A-Za-z], +)?--[a-z]/ && line !~ /^          /
}

/^usage: / && !begun {
	usage = substr($0, 8)
	print ".\\\" Made by doc/page.awk of what " name " --help prints."
	print ".Dd " date
	print ".Dt " toupper(name) " 1"
	print ".Os Muster"
	print ".Sh NAME"
	print ".Nm " name
	print ".Nd " plain(what)
	print ".Sh SYNOPSIS"
	print ".Bd -literal"
	print plain(usage)
	print ".Ed"
	begun = 1
	next
}

# A heading if options follow, else a line of text.
/^[A-Za-z].*:$/ {
	heading = $0
	next
}

is_option($0) {
	if (heading != "" || !listing) {
		end_list()
		end_paragraph()
	}
	if (!seen_options)
		print ".Sh OPTIONS"
	seen_options = 1
	if (heading != "")
		print ".Ss " plain(substr(heading, 1, length(heading) - 1))
	heading = ""
	begin_option($0)
	next
}

heading != "" {
	begin_text(0)
	paragraph = paragraph (paragraph == "" ? "" : " ") heading
	heading = ""
}

listing && /^          +/ {
	sub(/^ */, "")
	option = option (option == "" ? "" : " ") $0
	next
}

NF == 0 {
	end_list()
	if (paragraph != "" || literal)
		pending = 1
	end_paragraph()
	next
}

/^  / {
	if (!literal) {
		begin_text(1)
		end_paragraph()
		print ".Bd -literal -offset indent"
		literal = 1
	}
	print plain(substr($0, 3))
	next
}

{
	begin_text(0)
	if (literal)
		end_paragraph()
	paragraph = paragraph (paragraph == "" ? "" : " ") $0
}

END {
	end_list()
	end_paragraph()
	while (more != "" && (getline line < more) > 0)
		if (line !~ /^\.\\" SPDX/)
			print line
	print ".Sh SEE ALSO"
	print name == "muster" ? ".Xr muster-launch 1 ," : ".Xr muster 1 ,"
	if (name != "muster-train")
		print ".Xr muster-train 1 ,"
	print ".Xr muster-files 5 ,"
	print ".Xr muster-tutorial 7"
}
