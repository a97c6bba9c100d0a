# SPDX-License-Identifier: Apache-2.0
# The report of jobs/gpu-check.sh: lines of results, with tabs, become JSON on standard output and a
# Markdown file `markdown`. Lines:
#
#	fact   NAME TEXT
#	part   NAME STATUS SECONDS TEXT
#	smoke  NAME done|failed TEXT
#	test   NAME PASS|FAIL|SKIP|OUT OF TIME|NOT RUN SECONDS TEXT
#	ceiling NAME VALUE UNIT                            flops (TFLOP/s), copy, host (GB/s)
#	kernel NAME COUNT MICROSECONDS BYTES               of one step
#	model  NAME COUNT READ WRITTEN OPERATIONS HALF KNOWN
#	                                                   of the same step, by jobs/gpu/model; bytes. cuDNN's and
#	                                                   cuBLAS's kernels have names that no model knows
#	speed  SYSTEM NETWORK DTYPE BATCH V,V,... HOW [GMAC START MIB]
#	                                                   samples/s of each run; none: HOW says why. SYSTEM: muster;
#	                                                   of PyTorch eager, graph (in a CUDA graph), ieee (that
#	                                                   without TF32), compiled. PyTorch's float32 has TF32, but
#	                                                   for ieee; ours is a DTYPE of its own, "float32, TF32"

BEGIN {
	libraries = "cuDNN and cuBLAS"
}

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

$1 == "smoke" {
	smokes[++n_smokes] = "{\"name\": " quoted($2) ", \"status\": " quoted($3) ", \"text\": " quoted($4) "}"
	smoke_rows = smoke_rows "| " $2 " | " $3 " | " cell($4) " |\n"
}

$1 == "ceiling" {
	ceiling[$2] = $3
	ceilings[++n_ceilings] = "{\"name\": " quoted($2) ", \"value\": " number_of($3) ", \"unit\": " quoted($4) "}"
	ceiling_rows = ceiling_rows "| " $2 " | " $3 " | " $4 " |\n"
}

$1 == "kernel" {
	kernels[++n_kernels] = "{\"name\": " quoted($2) ", \"count\": " number_of($3) ", \"us\": " number_of($4) \
		", \"bytes\": " number_of($5) "}"
	kernel_rows = kernel_rows sprintf("| %s | %d | %.1f | %.2f | %.0f |\n", cell($2), $3, $4, $5 / 1e6, \
		$4 > 0 ? $5 / $4 / 1e3 : 0)
	measured[$2] = 1
	measured_n[$2] += $3
	measured_us[$2] += $4
	measured_bytes[$2] += $5
	step_us += $4
	step_bytes += $5
}

$1 == "model" && $2 !~ /^(copy|set)/ {
	own = $2 !~ /^cu(DNN|BLAS)/
	name = own ? $2 : libraries
	if (!(name in model_n))
		model_order[++n_model] = name
	model_n[name] += $3
	model_bytes[name] += $3 * ($4 + $5)
	n_sizes++
	size_name[n_sizes] = name
	size_n[n_sizes] = $3
	size_bytes[n_sizes] = $4 + $5
	size_operations[n_sizes] = $6
}

$1 == "speed" {
	m = median($6)
	speeds[++n_speeds] = "{\"system\": " quoted($2) ", \"network\": " quoted($3) ", \"dtype\": " quoted($4) \
		", \"batch\": " number_of($5) ", \"samples_per_second\": " (m > 0 ? sprintf("%.1f", m) : "null") \
		", \"runs\": [" $6 "], \"text\": " quoted($7) ", \"start_seconds\": " number_of($9) \
		", \"mib\": " number_of($10) "}"
	key = $3 "\t" $4 "\t" $5
	if (!(key in known)) {
		known[key] = 1
		order[++n_keys] = key
	}
	if (m > best[$2, key] + 0) {
		best[$2, key] = m
		how[$2, key] = $7
	}
	if ($2 == "muster" && $8 > 0)
		gmac[key] = $8
	if ($2 == "muster" && $9 != "" && !((key) in start)) {
		start[key] = $9
		mib[key] = $10
	}
	if (m == 0)
		problem[$2, key] = $7
}

function shown(format, value)
{
	return value > 0 ? sprintf(format, value) : "-"
}

function or_null(format, value)
{
	return value > 0 ? sprintf(format, value) : "null"
}

# Our best beside the best of each way of PyTorch.
function compare(i, key, theirs, f, ours, eager, graph, ieee, compiled, flops, part)
{
	for (i = 1; i <= n_keys; i++) {
		key = order[i]
		split(key, f, "\t")
		ours = best["muster", key] + 0
		theirs = key
		sub(/, TF32/, "", theirs)
		eager = best["eager", theirs] + 0
		graph = best["graph", theirs] + 0
		ieee = best["ieee", key] + 0
		compiled = best["compiled", theirs] + 0
		flops = ours * gmac[key] * 6 / 1e3
		part = ceiling["flops"] > 0 ? 100 * flops / ceiling["flops"] : 0
		ratios[i] = "{\"network\": " quoted(f[1]) ", \"dtype\": " quoted(f[2]) \
			", \"batch\": " number_of(f[3]) \
			", \"muster\": " or_null("%.1f", ours) ", \"eager\": " or_null("%.1f", eager) \
			", \"graph\": " or_null("%.1f", graph) ", \"graph_ieee\": " or_null("%.1f", ieee) \
			", \"compiled\": " or_null("%.1f", compiled) \
			", \"to_eager\": " or_null("%.3f", eager ? ours / eager : 0) \
			", \"to_graph\": " or_null("%.3f", graph ? ours / graph : 0) \
			", \"to_compiled\": " or_null("%.3f", compiled ? ours / compiled : 0) \
			", \"tflops\": " or_null("%.2f", flops) "}"
		speed_rows = speed_rows "| " f[1] " | " f[2] " | " f[3] " | " \
			shown("%.0f", ours) " | " shown("%.0f", eager) " | " shown("%.0f", graph) " | " \
			shown("%.0f", ieee) " | " shown("%.0f", compiled) " | " \
			shown("%.2f", eager ? ours / eager : 0) " | " \
			shown("%.2f", graph ? ours / graph : 0) " | " \
			shown("%.2f", compiled ? ours / compiled : 0) " | " \
			shown("%.1f", flops) " | " shown("%.0f", part) " | " shown("%.0f", mib[key]) " | " \
			shown("%.1f", start[key]) " | " cell(ours ? how["muster", key] : problem["muster", key]) "; " \
			cell(how["eager", theirs]) " |\n"
	}
}

# What the first configuration reaches of the memory's ceiling, by the bytes that ncu has counted.
function bytes_reached(f, rate, text)
{
	if (n_kernels == 0 || !(order[1] in known))
		return
	split(order[1], f, "\t")
	rate = best["muster", order[1]] / f[3] * step_bytes / 1e9
	text = sprintf("%.3f GB of memory a step; %.0f GB/s at the speed measured", step_bytes / 1e9, rate)
	if (ceiling["copy"] > 0)
		text = text sprintf(", %.0f %% of a copy's", 100 * rate / ceiling["copy"])
	facts[++n_facts] = quoted("bytes of " f[1] " " f[2] " " f[3]) ": " quoted(text)
	fact_rows = fact_rows "| bytes of " f[1] " " f[2] " " f[3] " | " text " |\n"
}

# Microseconds of the model at the ceilings measured, else at an H200's, beside those measured; what the model does not
# name are kernels of the libraries.
function compare_model(i, name, copy, flops, a, b, us, known)
{
	copy = ceiling["copy"] > 0 ? ceiling["copy"] : 4300
	flops = ceiling["flops"] > 0 ? ceiling["flops"] : 600
	for (i = 1; i <= n_sizes; i++) {
		a = size_bytes[i] / copy / 1e3
		b = size_operations[i] / flops / 1e6
		us[size_name[i]] += size_n[i] * (a > b ? a : b)
	}
	for (name in measured)
		if (!(name in model_n)) {
			measured_n[libraries] += measured_n[name]
			measured_us[libraries] += measured_us[name]
			measured_bytes[libraries] += measured_bytes[name]
		}
	for (i = 1; i <= n_model; i++) {
		name = model_order[i]
		models[i] = "{\"name\": " quoted(name) ", \"count\": " model_n[name] \
			sprintf(", \"bytes\": %.0f, \"us\": %.3f", model_bytes[name], us[name]) \
			", \"measured_count\": " measured_n[name] + 0 \
			sprintf(", \"measured_us\": %.3f}", measured_us[name])
		model_rows = model_rows sprintf("| %s | %d | %d | %.2f | %.2f | %.1f | %.1f | %s |\n", cell(name), \
			model_n[name], measured_n[name], model_bytes[name] / 1e6, measured_bytes[name] / 1e6, \
			us[name], measured_us[name], \
			shown("%.2f", us[name] > 0 ? measured_us[name] / us[name] : 0))
	}
}

function list(name, items, n, last, i)
{
	printf "  \"%s\": [", name
	for (i = 1; i <= n; i++)
		printf "%s\n    %s", (i > 1 ? "," : ""), items[i]
	printf "%s]%s\n", (n ? "\n  " : ""), (last ? "" : ",")
}

function table(title, head, rule, rows)
{
	if (rows != "")
		printf "\n## %s\n\n| %s |\n| %s |\n%s", title, head, rule, rows >markdown
}

END {
	compare()
	bytes_reached()
	compare_model()
	printf "{\n  \"seconds\": %d,\n  \"facts\": {", seconds
	for (i = 1; i <= n_facts; i++)
		printf "%s\n    %s", (i > 1 ? "," : ""), facts[i]
	printf "%s},\n", (n_facts ? "\n  " : "")
	list("parts", parts, n_parts)
	list("smoke", smokes, n_smokes)
	list("tests", tests, n_tests)
	list("ceilings", ceilings, n_ceilings)
	list("kernels", kernels, n_kernels)
	list("model", models, n_model)
	list("speeds", speeds, n_speeds)
	list("ratios", ratios, n_keys, 1)
	print "}"
	print "# Muster on a GPU" >markdown
	table("Parts", "part | status | s | what", "--- | --- | --- | ---", part_rows)
	table("Smoke", "run | status | what", "--- | --- | ---", smoke_rows)
	table("Tests", "test | status | s | what", "--- | --- | --- | ---", test_rows)
	table("Ceilings, measured", "what | value | unit", "--- | --- | ---", ceiling_rows)
	table("Speed, samples/s (medians; the best way of each)", \
	      "network | dtype | batch | Muster | PyTorch eager | in a CUDA graph | and without TF32 | compiled |" \
	      " to eager | to the graph | to compiled |" \
	      " TFLOP/s | % of ceiling | MiB | start s | how: Muster; PyTorch", \
	      "--- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | ---", \
	      speed_rows)
	table("Kernels of a step", "kernel | count | us | MB | GB/s", "--- | --- | --- | --- | ---", kernel_rows)
	table("The same step by the model (jobs/gpu/model), at the ceilings measured", \
	      "kernel | count, model | measured | MB, model | measured | us, model | measured | measured / model", \
	      "--- | --- | --- | --- | --- | --- | --- | ---", model_rows)
	table("Facts", "what | value", "--- | ---", fact_rows)
	close(markdown)
}
