# SPDX-License-Identifier: Apache-2.0
# ncu's CSV (a row for each metric of each kernel) becomes a line for each kernel's name, with tabs: name, how often it
# ran, microseconds, bytes of memory. Columns are found by their titles; units are the base ones (--print-units base).

# The fields of a line into f; commas in quotes are none.
function fields(line, f, n, text)
{
	n = 0
	while (line != "") {
		if (match(line, /^"([^"]|"")*"/)) {
			text = substr(line, 2, RLENGTH - 2)
			line = substr(line, RLENGTH + 1)
		} else {
			match(line, /^[^,]*/)
			text = substr(line, 1, RLENGTH)
			line = substr(line, RLENGTH + 1)
		}
		gsub(/""/, "\"", text)
		f[++n] = text
		sub(/^,/, "", line)
	}
	return n
}

/^==/ { next }

!has_titles {
	n = fields($0, f)
	for (i = 1; i <= n; i++)
		at[f[i]] = i
	has_titles = ("Kernel Name" in at) && ("Metric Value" in at)
	next
}

{
	fields($0, f)
	name = f[at["Kernel Name"]]
	metric = f[at["Metric Name"]]
	unit = f[at["Metric Unit"]]
	value = f[at["Metric Value"]]
	gsub(/,/, "", value)
	gsub(/\t/, " ", name)
	sub(/\(.*/, "", name)
	if (metric == "gpu__time_duration.sum") {
		count[name]++
		us[name] += value * (unit ~ /^n/ ? 1e-3 : unit ~ /^u/ ? 1 : unit ~ /^m/ ? 1e3 : 1e6)
	} else if (metric == "dram__bytes.sum") {
		bytes[name] += value * (unit ~ /^K/ ? 1e3 : unit ~ /^M/ ? 1e6 : unit ~ /^G/ ? 1e9 : 1)
	}
}

END {
	for (name in count)
		printf "%s\t%d\t%.3f\t%.0f\n", name, count[name], us[name], bytes[name]
}
