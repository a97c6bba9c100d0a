# SPDX-License-Identifier: Apache-2.0
# The report of jobs/gpu-check.sh: lines of results, with tabs, become JSON on standard output and a
# Markdown file `markdown`. Lines:
#
#	fact   NAME TEXT
#	part   NAME STATUS SECONDS TEXT
#	test   NAME PASS|FAIL|SKIP SECONDS TEXT
#	speed  SYSTEM NETWORK DTYPE BATCH V,V,... HOW      samples/s of each run; none: HOW says why

function quoted(text)
{
	gsub(/\\/, "&&", text)
	gsub(/"/, "\\\"", text)
	return "\"" text "\""
}

function number_of(text)
{
	return text ~ /^[0-9]+(\.[0-9]+)?$/ ? text : "null"
}

function median(list, v, n, i, j, t)
{
	n = split(list, v, ",")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
			t = v[j]
			v[j] = v[j - 1]
			v[j - 1] = t
		}
	return n ? (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2 : 0
}

function cell(text)
{
	gsub(/\|/, "\\|", text)
	return text
}

$1 == "fact" {
	facts[++n_facts] = quoted($2) ": " quoted($3)
	fact_rows = fact_rows "| " cell($2) " | " cell($3) " |\n"
}

$1 == "part" {
	parts[++n_parts] = "{\"name\": " quoted($2) ", \"status\": " quoted($3) ", \"seconds\": " number_of($4) \
		", \"text\": " quoted($5) "}"
	part_rows = part_rows "| " $2 " | " $3 " | " $4 " | " cell($5) " |\n"
}

$1 == "test" {
	tests[++n_tests] = "{\"name\": " quoted($2) ", \"status\": " quoted($3) ", \"seconds\": " number_of($4) \
		", \"text\": " quoted($5) "}"
	test_rows = test_rows "| " $2 " | " $3 " | " $4 " | " cell($5) " |\n"
}

$1 == "speed" {
	m = median($6)
	speeds[++n_speeds] = "{\"system\": " quoted($2) ", \"network\": " quoted($3) ", \"dtype\": " quoted($4) \
		", \"batch\": " number_of($5) ", \"samples_per_second\": " (m > 0 ? sprintf("%.1f", m) : "null") \
		", \"runs\": [" $6 "], \"text\": " quoted($7) "}"
	key = $3 "\t" $4 "\t" $5
	if (!(key in known)) {
		known[key] = 1
		order[++n_keys] = key
	}
	if (m > best[$2, key] + 0) {
		best[$2, key] = m
		how[$2, key] = $7
	}
	if (m == 0)
		problem[key] = $7
}

function list(name, items, n, last, i)
{
	printf "  \"%s\": [", name
	for (i = 1; i <= n; i++)
		printf "%s\n    %s", (i > 1 ? "," : ""), items[i]
	printf "%s]%s\n", (n ? "\n  " : ""), (last ? "" : ",")
}

# Our best beside PyTorch's best.
function compare(i, key, f, a, b)
{
	for (i = 1; i <= n_keys; i++) {
		key = order[i]
		split(key, f, "\t")
		a = best["muster", key] + 0
		b = best["pytorch", key] + 0
		ratios[i] = "{\"network\": " quoted(f[1]) ", \"dtype\": " quoted(f[2]) ", \"batch\": " number_of(f[3]) \
			", \"muster\": " (a ? sprintf("%.1f", a) : "null") ", \"pytorch\": " \
			(b ? sprintf("%.1f", b) : "null") ", \"ratio\": " (a && b ? sprintf("%.3f", a / b) : "null") "}"
		speed_rows = speed_rows "| " f[1] " | " f[2] " | " f[3] " | " (a ? sprintf("%.0f", a) : "-") " | " \
			(b ? sprintf("%.0f", b) : "-") " | " (a && b ? sprintf("%.2f", a / b) : "-") " | " \
			cell(a ? how["muster", key] : problem[key]) "; " cell(how["pytorch", key]) " |\n"
	}
}

function table(title, head, rule, rows)
{
	if (rows != "")
		printf "\n## %s\n\n| %s |\n| %s |\n%s", title, head, rule, rows >markdown
}

END {
	compare()
	printf "{\n  \"seconds\": %d,\n  \"facts\": {", seconds
	for (i = 1; i <= n_facts; i++)
		printf "%s\n    %s", (i > 1 ? "," : ""), facts[i]
	printf "%s},\n", (n_facts ? "\n  " : "")
	list("parts", parts, n_parts)
	list("tests", tests, n_tests)
	list("speeds", speeds, n_speeds)
	list("ratios", ratios, n_keys, 1)
	print "}"
	print "# Muster on a GPU" >markdown
	table("Parts", "part | status | s | what", "--- | --- | --- | ---", part_rows)
	table("Speed, samples/s (medians; the best way of each)", \
	      "network | dtype | batch | Muster | PyTorch | ratio | how: Muster; PyTorch", \
	      "--- | --- | --- | --- | --- | --- | ---", speed_rows)
	table("Tests", "test | status | s | what", "--- | --- | --- | ---", test_rows)
	table("Facts", "what | value", "--- | ---", fact_rows)
	close(markdown)
}
