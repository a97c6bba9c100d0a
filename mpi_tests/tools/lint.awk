# SPDX-License-Identifier: Apache-2.0
# The rules of mpi_tests/tools/lint about text. Arguments: the makefiles, then the other files, named from
# the top of the source tree. Prints "file:line: what" for each finding. Plain POSIX awk, without
# repetition counts: mawk has none.

function finding(line, what)
{
	printf "%s:%d: %s\n", FILENAME_NOW, line, what
	findings++
}

# ---- the folder table of the architecture: who may include whose public header ----

function arrows_init(base)
{
	arrows["base"] = "base"
	arrows["comm"] = "comm base"
	arrows["device"] = "device base"
	arrows["net"] = "net base device"
	arrows["storage"] = "storage base"
	arrows["tokens"] = "tokens base storage"
	arrows["image"] = "image base storage"
	arrows["input"] = "input base comm storage tokens image"
	arrows["optim"] = "optim base device"
	arrows["compress"] = "compress base"
	arrows["keys"] = "keys base comm storage optim compress"
	arrows["kvstore"] = "kvstore base comm device optim compress"
	base = "base comm device net storage tokens image input optim compress keys kvstore"
	arrows["conf"] = base " conf"
	arrows["engine"] = base " conf engine"
	arrows["checkpoint"] = base " conf engine checkpoint"
	arrows["report"] = base " conf engine checkpoint report"
	arrows["train"] = base " conf engine checkpoint report train"
	part_of["plan"] = "net" # a second public header of a folder
	part_of["records"] = "storage"
	part_of["arrays"] = part_of["pictures"] = "input"
	part_of["text"] = "input"
	part_of["json"] = "base"
	part_of["shape"] = "base"
	part_of["gpus"] = "kvstore"
	part_of["notice"] = "kvstore"
	part_of["parallel"] = "engine"
	part_of["metrics"] = "net"
	part_of["update"] = "device"
	calls_mpi = " comm kvstore keys engine storage "
	names_mpi = calls_mpi "conf checkpoint report train "
	while ((getline line < ratchet) > 0) # calls and includes that are still against the arrows
		if (split(line, word, " ") == 3 && word[1] == "includes")
			known[word[2] " " word[3]] = 1
}

function is_allowed(name)
{
	return !(folder in arrows) || index(" " arrows[folder] " ", " " name " ")
}

# The folder of src that a public header belongs to.
function owner_of(name)
{
	return (name in part_of) ? part_of[name] : name
}

# The folder of src that a file belongs to; public headers belong to the folder of their name.
function folder_of(path, parts)
{
	split(path, parts, "/")
	if (parts[1] == "src")
		return parts[2]
	if (path ~ /^include\/muster\//) {
		sub(/\.h$/, "", parts[3])
		return owner_of(parts[3])
	}
	return parts[1]
}

function may_call_mpi()
{
	return index(calls_mpi, " " folder " ") || FILENAME_NOW == "src/train/main.c" || folder == "mpi_tests" || \
	       FILENAME_NOW ~ /^jobs\/bench\/bench_/
}

function check_known(pair)
{
	if (pair in known)
		met[pair] = 1
	else
		finding(FNR, "include against the arrows: " folder " may include only: " arrows[folder])
}

function exists(path, line, there)
{
	there = (getline line < path) >= 0
	close(path)
	return there
}

function check_public_include(header, name)
{
	name = header
	sub(/^muster\//, "", name)
	sub(/\.h$/, "", name)
	name = owner_of(name)
	if (!is_allowed(name))
		check_known(FILENAME_NOW " " header)
}

function check_system_include(header)
{
	if (header == "mpi.h" && !may_call_mpi() && !index(names_mpi, " " folder " "))
		finding(FNR, "<mpi.h> outside the folders that call MPI, and train")
	if (header ~ /^(oneapi\/)?dnnl/ && FILENAME_NOW !~ /^src\/device\/cpu\//)
		finding(FNR, "oneDNN outside src/device/cpu")
	if (header ~ /^(hdf5|H5)/ && folder != "storage" && folder != "mpi_tests")
		finding(FNR, "HDF5 outside src/storage and mpi_tests")
	if (header ~ /^(cuda|cudnn|cublas|nccl)/ && FILENAME_NOW !~ /^src\/(device\/cuda|kvstore\/gpu)\//)
		finding(FNR, "CUDA outside src/device/cuda and src/kvstore/gpu")
}

# Headers of the same folder by their name; of others, from src, along the arrows; of tests and tools, those of lib.
function check_private_include(header, dir, parts)
{
	dir = FILENAME_NOW
	sub(/[^\/]*$/, "", dir)
	if (FILENAME_NOW ~ /^include\//)
		finding(FNR, "a public header includes a private one: " header)
	else if (header == "config.h" || header ~ /^(git_version|event\.pb-c)\.h$/)
		return
	else if (FILENAME_NOW ~ /^(mpi_tests|data)\// && header ~ /^\.\.\/lib\/[a-z_]*\.h$/)
		return
	else if (FILENAME_NOW ~ /^mpi_tests\/(train\/test_metrics|unit\/test_tally)\.c$/ &&
		 header ~ /^(engine\/metrics|train\/best)\.h$/) # with a loss of its own
		return
	else if (FILENAME_NOW ~ /^mpi_tests\/unit\// && header == "conf/rules.h") # a test of each row
		return
	else if (FILENAME_NOW ~ /^mpi_tests\/(net\/test_plans|gpu\/attention_plans)\.c$/ &&
		 header ~ /^(device\/cuda|net\/layers)\//) # no GPU
		return
	else if (FILENAME_NOW ~ /^mpi_tests\/(net|layers|gpu|kernels|train)\// &&
		 header ~ /^(device\/(op|joint)|net\/plan)\.h$/)
		return
	else if (header ~ /\.def$/ && exists(dir header)) # rows of a table
		return
	else if (header ~ /\// && FILENAME_NOW ~ /^src\// && exists("src/" header)) {
		split(header, parts, "/")
		if (is_allowed(parts[1]))
			return
		check_known(FILENAME_NOW " " header)
	} else if (header ~ /\// || !exists(dir header))
		finding(FNR, "private header of another folder: " header)
}

function check_include(text, header)
{
	sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
	header = substr(text, 2)
	sub(/[>"].*/, "", header)
	if (text ~ /^"/)
		check_private_include(header)
	else if (header ~ /^muster\//)
		check_public_include(header)
	else
		check_system_include(header)
}

# ---- C ----

# The line without comments, and with strings and characters emptied.
function code_of(text, out, i, c, two, quote)
{
	if (!in_comment && text !~ /["'\/]/)
		return text
	out = ""
	quote = ""
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		two = substr(text, i, 2)
		if (in_comment) {
			if (two == "*/") {
				in_comment = 0
				i++
			}
		} else if (quote != "") {
			if (c == "\\")
				i++
			else if (c == quote) {
				quote = ""
				out = out c
			}
		} else if (two == "/*") {
			in_comment = 1
			i++
		} else if (two == "//") {
			break
		} else {
			if (c == "\"" || c == "'")
				quote = c
			out = out c
		}
	}
	return out
}

# K&R: a function's braces are the ones in the first column.
function check_function(code)
{
	if (code ~ /^[A-Za-z_].*\(/) {
		function_name = code
		sub(/\(.*/, "", function_name)
		sub(/.*[ *]/, "", function_name)
	}
	if (code ~ /^\{/)
		function_start = FNR
	if (code ~ /^\}/ && function_start) {
		if (FNR - function_start + 1 > max_function)
			finding(function_start, "function " function_name " has " \
				FNR - function_start + 1 " lines, more than " max_function)
		function_start = 0
	}
}

# Members of a struct of the stores: one that holds more is several ideas.
function check_struct(code, text)
{
	if (code ~ /^struct [a-z_0-9]+ \{$/) {
		struct_start = FNR
		members = 0
	} else if (struct_start && code ~ /^\}/) {
		if (members > max_members)
			finding(struct_start, "struct of " members " members, more than " max_members)
		struct_start = 0
	} else if (struct_start) {
		text = code
		while (gsub(/\([^()]*\)/, "", text))
			;
		members += gsub(/[;,]/, "", text)
	}
}

function check_calls(code)
{
	if (code ~ /MPI_COMM_WORLD/ && FILENAME_NOW != "src/comm/world.c" && folder != "mpi_tests")
		finding(FNR, "MPI_COMM_WORLD outside src/comm/world.c")
	if (code ~ /MPI_(Comm_free|Comm_disconnect|Win_free|File_close)[ \t]*\(/ && folder != "mpi_tests" && \
	    FILENAME_NOW != "src/comm/subset.c" && FILENAME_NOW != "src/comm/world.c")
		finding(FNR, "a collective close: mu_comm_close, which members that are dropped do without")
	if (code ~ /(^|[^A-Za-z0-9_])MPI_[A-Z][a-z_]*[ \t]*\(/ && !may_call_mpi())
		finding(FNR, "MPI call outside comm, kvstore, keys, engine, storage, main and bench_*")
	if (code ~ /(^|[^A-Za-z0-9_])(_|_E|quick_)?(exit|abort)[ \t]*\(/ && FILENAME_NOW ~ /^(src|nets|include)\// && \
	    FILENAME_NOW != "src/train/main.c" && FILENAME_NOW != "src/comm/world.c")
		finding(FNR, "exit or abort in the library: return a status")
}

# Functions marked for several instruction sets: a compiler may give what chooses among them a symbol that all files
# share, whatever the function's own.
function check_clones(code, name)
{
	if (code ~ /^(MU_LOOP|MU_SHIFT)[ \t]*$/) {
		marked = FNR + 1
		return
	}
	if (code !~ /^(MU_LOOP|MU_SHIFT)[ \t]/ && marked != FNR)
		return
	name = code
	sub(/\(.*/, "", name)
	sub(/.*[ *\t]/, "", name)
	if (code !~ /(^|[ \t])static[ \t]/)
		finding(FNR, "a function for several instruction sets is not static")
	if (code !~ /\(/)
		finding(FNR, "a function for several instruction sets: its name is not in the line of static")
	else if (name in clone_of)
		finding(FNR, "a function for several instruction sets has the name of one in " clone_of[name] ": " name)
	else
		clone_of[name] = FILENAME_NOW ":" FNR
}

# One for every thousand lines begun; the tables of devices and stores are made of them.
function check_feature(code)
{
	if (code ~ /HAVE_CONFIG_H/)
		return
	if (code ~ /^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)[ \t(!].*(HAVE_|MU_PARANOID|USE_)/ && \
	    FILENAME_NOW !~ /table[^\/]*$/)
		feature_line[++n_features] = FNR
}

# Options are the programs': the library names the setting, conf/messages.c the option. Options of other programs follow
# the program's name. The help of an option that is a reader's or a network's setting is about options.
function check_options(text)
{
	if (FILENAME_NOW !~ /^(nets|src\/(base|comm|device|image|storage|tokens|optim|net|input|compress))\// || \
	    FILENAME_NOW ~ /^src\/base\/options/ || text ~ /\.help = /)
		return
	gsub(/(srun|configure with|pkg-config) --/, "", text)
	if (text ~ /"([^"]*[^"A-Za-z0-9-])?--[a-z]/)
		finding(FNR, "an option's name in the library: name the setting")
}

function check_c_line(code)
{
	if (FNR == 1 && $0 != "/* SPDX-License-Identifier: Apache-2.0 */")
		finding(1, "the first line is not /* SPDX-License-Identifier: Apache-2.0 */")
	if (FNR <= 20 && $0 ~ /@np +[0-9]/)
		has_np = 1
	check_options($0)
	code = code_of($0)
	if (code ~ /^[ \t]*#[ \t]*include/)
		check_include($0)
	check_function(code)
	if (index(small_structs, " " folder " "))
		check_struct(code)
	check_calls(code)
	check_clones(code)
	check_feature(code)
}

# ---- all files ----

function columns(text, n, i, parts, width)
{
	gsub(/[\200-\277]/, "", text)
	n = split(text, parts, "\t")
	width = length(parts[1])
	for (i = 2; i <= n; i++)
		width = int(width / 8) * 8 + 8 + length(parts[i])
	return width
}

function check_text_line(width)
{
	if (is_script && FNR <= 3 && /SPDX-License-Identifier: Apache-2.0/)
		has_spdx = 1
	if (/[ \t]$/)
		finding(FNR, "blanks at the end of the line")
	if (/T[O]DO|F[I]XME/)
		finding(FNR, "a note of work not done: do it, or file an issue")
	width = columns($0)
	if (width > (is_script ? max_script_columns : max_columns))
		finding(FNR, width " columns, more than " (is_script ? max_script_columns : max_columns))
}

function begin_file(dir)
{
	dir = FILENAME
	sub(/\/[^\/]*$/, "", dir)
	if (++files_in[dir] == max_folder + 1 && FILENAME ~ /^(src|include|data|mpi_tests)\//)
		printf "%s:1: more than %d files in one folder\n", dir, max_folder
	findings += files_in[dir] == max_folder + 1
	FILENAME_NOW = FILENAME
	folder = folder_of(FILENAME)
	is_script = FILENAME !~ /\.(c|h|cu)$/
	in_comment = 0
	function_start = 0
	marked = 0
	n_features = 0
	has_np = 0
	has_spdx = 0
}

function end_file(i, limit)
{
	if (FILENAME_NOW ~ /^include\//)
		limit = max_header
	else
		limit = max_file
	if (last_line > limit)
		finding(last_line, last_line " lines, more than " limit)
	for (i = int((last_line + 999) / 1000) + 1; i <= n_features; i++)
		finding(feature_line[i], "more than one feature #if per 1000 lines: " \
			"put the choice into a table or the build list")
	if (is_script && !has_spdx)
		finding(1, "no SPDX-License-Identifier: Apache-2.0 in the first three lines")
	if (FILENAME_NOW ~ /^mpi_tests\/.*\/test_[^\/]*\.c$/ && !has_np)
		finding(1, "the first 20 lines do not say  @np COUNTS")
	if (FILENAME_NOW ~ /^(src|nets|data|include|mpi_tests)\/.*\.(c|h|cu)$/ || \
	    FILENAME_NOW ~ /^mpi_tests\/.*\/test_.*\.sh$/)
		check_listed(FILENAME_NOW)
}

function check_listed(path, program)
{
	program = path
	sub(/\.c$/, "", program)
	if (!(path in listed) && !(path ~ /^mpi_tests\// && (program in listed)))
		finding(1, "in no list of the makefiles")
}

BEGIN {
	max_columns = 100
	max_script_columns = 120 # shell, awk, m4 and make have long words that cannot be cut
	max_function = 80
	max_members = 30
	small_structs = " comm keys kvstore net "
	max_file = 500
	max_header = 700 # a public one: a manual
	max_folder = 30
	arrows_init()
}

FNR == 1 {
	if (FILENAME_NOW != "")
		end_file()
	begin_file()
}

{
	last_line = FNR
	if (FILENAME ~ /\.am$/)
		for (i = 1; i <= NF; i++)
			listed[$i] = 1
	check_text_line()
	if (!is_script)
		check_c_line()
}

END {
	if (FILENAME_NOW != "")
		end_file()
	for (pair in known)
		if (!(pair in met)) {
			print ratchet ":1: the include is gone: remove the line \"includes " pair "\""
			findings++
		}
	exit findings > 0
}
