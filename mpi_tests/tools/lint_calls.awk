# SPDX-License-Identifier: Apache-2.0
# The rules of mpi_tests/tools/lint about calls: they go down, folder against folder. Arguments: the ratchet (see lint),
# then a list of symbols as nm -A -g -P prints it, paths beginning with src/. Prints "file:line: what" for each finding.
# Plain POSIX awk.

BEGIN {
	# From the ground up; a folder may call the folders before it.
	n_folders = split("base comm device net storage tokens image input optim compress keys kvstore conf engine " \
		"checkpoint report train", folders, " ")
	for (i = 1; i <= n_folders; i++)
		level[folders[i]] = i
}

function folder_of(file, parts)
{
	split(file, parts, "/")
	return parts[2]
}

# The ratchet: "calls FILE FILE" and "circle FOLDER COUNT".
FILENAME == ARGV[1] {
	if ($1 == "calls")
		known[$2 " " $3] = FNR
	else if ($1 == "circle") {
		circle[$2] = $3
		circle_line[$2] = FNR
	}
	next
}

{
	file = $1
	sub(/\.o:$/, "", file)
	if ($3 == "U" || $3 == "w" || $3 == "v")
		used[file " " $2] = 1
	else if ($3 ~ /^[TDBRVWC]$/)
		defined_in[$2] = file
	parts[file] = 1
}

# Every part that configure may leave out is there: what the ratchet lists and is not found is gone for good.
function is_complete()
{
	return ("src/device/cpu/cpu" in parts) && ("src/device/cuda/cuda" in parts) && \
	       ("src/kvstore/gpu/nccl" in parts) && ("src/storage/arrays/h5" in parts) && \
	       ("src/image/jpeg" in parts)
}

function note_call(from, to, a, b)
{
	a = folder_of(from)
	b = folder_of(to)
	if (a == b && !((from, to) in arrow)) {
		arrow[from, to] = 1
		files[a] = files[a] " " from " " to
	}
	if (level[b] > level[a])
		upward[from " " to] = upward[from " " to] " " symbol
}

# The most files of a folder that call each other in a circle: those that reach one another.
function largest_circle(folder, n, list, i, j, k, of, count, most)
{
	n = split(files[folder], list, " ")
	split("", number)
	count = 0
	for (i = 1; i <= n; i++)
		if (!(list[i] in number)) {
			number[list[i]] = ++count
			name[count] = list[i]
		}
	split("", reach)
	for (i = 1; i <= count; i++)
		for (j = 1; j <= count; j++)
			if ((name[i], name[j]) in arrow)
				reach[i, j] = 1
	for (k = 1; k <= count; k++)
		for (i = 1; i <= count; i++)
			if ((i, k) in reach)
				for (j = 1; j <= count; j++)
					if ((k, j) in reach)
						reach[i, j] = 1
	most = 1
	for (i = 1; i <= count; i++) {
		of = 0
		for (j = 1; j <= count; j++)
			if ((i, j) in reach && (j, i) in reach)
				of++
		if (of > most)
			most = of
	}
	return most
}

END {
	for (use in used) {
		split(use, part, " ")
		symbol = part[2]
		if (symbol in defined_in && defined_in[symbol] != part[1])
			note_call(part[1], defined_in[symbol])
	}
	for (pair in upward) {
		split(pair, part, " ")
		if (!(pair in known)) {
			print part[1] ".c:1: calls upward, into " part[2] ".c:" upward[pair]
			findings++
		}
	}
	for (pair in known)
		if (!(pair in upward) && is_complete()) {
			print ARGV[1] ":" known[pair] ": the call is gone: remove this line"
			findings++
		}
	for (i = 1; i <= n_folders; i++) {
		most = largest_circle(folders[i])
		allowed = folders[i] in circle ? circle[folders[i]] : 1
		if (most > allowed) {
			print "src/" folders[i] ":1: a circle of " most " files, more than " allowed
			findings++
		} else if (most < allowed && is_complete()) {
			print ARGV[1] ":" circle_line[folders[i]] ": the largest circle of " folders[i] \
				" has " most " files: lower the number"
			findings++
		}
	}
	exit findings > 0
}
