#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plot_log: what gnuplot is told, its pictures, and what happens without gnuplot.
#
. "$SRCDIR/mpi_tests/lib/lib.sh"

search=$PATH # where plot_log looks for gnuplot

plot() {
	env PATH="$search" "$BUILDDIR/plot_log" "$@"
}

# refuses STATUS REGEX ARGUMENT...: one error, no picture
refuses() {
	local expected=$1 regex=$2 st
	shift 2
	plot "$@" >"$log" 2>&1
	st=$?
	[ $st = "$expected" ] || fail "exit status $st, not $expected, of plot_log $*"
	expect_count 1 'error: '
	expect "error: .*$regex"
	! ls ./*.svg* ./*.png* >/dev/null 2>&1 || fail "a picture in spite of an error: $(ls ./*.svg* ./*.png*)"
}

# draws ARGUMENT...
draws() {
	plot "$@" >"$log" 2>&1 && return
	fail "exit status $? of plot_log $*"
	show_log
}

for epoch in 0 1 2; do
	echo "Epoch[$epoch] Train-accuracy=0.$((5 + epoch))"
	echo "Epoch[$epoch] Train-cross-entropy=$((3 - epoch)).5"
	echo "Epoch[$epoch] Time cost=10.5"
	[ $epoch = 1 ] || echo "Epoch[$epoch] Validation-accuracy=0.$((4 + epoch))"
done >one.log
grep -v cross-entropy one.log | sed 's/Time cost=10.5/Time cost=6/' >"it's two.log"

part "a page"
{
	echo "start with arguments network=lenet, title=<b>"
	echo "node 0 (here): worker 0 (rank 0, pid 1)"
	echo "batch size 50 per device; 4000 samples in 40 steps an epoch"
	cat one.log
	printf 'Epoch[0] Batch [0-20]\tSpeed: 1500.5 samples/sec\taccuracy=0.4\tcomm=3.5%%\n'
	printf 'Epoch[1] Batch [0-20]\tSpeed: 1700.5 samples/sec\taccuracy=0.4\tcomm=3.5%%\n'
	echo "warning: less <i>than</i> \"that\" & more"
	echo "trained 8000 samples in 4.751 s: 1683.72 samples/sec"
	echo "worker 0's seconds: data 1.000, forward 2.000, backward 4.000, push 0.500, pull 0.500, update 0.000"
	echo "peak memory: at most 114.9 MB (rank 1, here); rank 0 113.1, rank 1 114.9 MB"
} >run.log
draws run.log one.log --output page.html --title "a <page>"
has() {
	grep -qF -- "$1" page.html || fail "the page lacks $1"
}
has '<title>a &lt;page&gt;</title>'
has 'warning: less &lt;i&gt;than&lt;/i&gt; &quot;that&quot; &amp; more'
has 'title=&lt;b&gt;'
has '<td>4.000 s</td><td>50.0 %</td>'
has '<b>1684</b>'
has 'node 0 (here): worker 0'
[ "$(grep -c '<svg ' page.html)" = 3 ] || fail "$(grep -c '<svg ' page.html) charts, not of accuracy, loss and speed"
[ "$(grep -c '<circle ' page.html)" = 6 ] || fail "$(grep -c '<circle ' page.html) points, not 6"
grep -Eq 'https?:|<script|<link|nan|inf' page.html && fail "the page names another file, or a value that is none"
has '<b>115 MB</b>'
has 'Epoch[2] Validation-accuracy=0.6'
has '<p>Trained to its last epoch.</p>'
grep -q 'Settings that differ' page.html && fail "settings of a log without settings"

part "metrics by their rows"
for metric in 'accuracy 0.6' 'top_k_accuracy_5 0.6' 'nll-loss 0.4' 'another 0.4'; do
	sed -e '/cross-entropy/d' -e "s/-accuracy/-${metric% *}/" one.log >other.log
	draws other.log --output page.html
	has "<b>${metric#* }</b><span class=\"soft\">validation ${metric% *}, best</span>"
done

part "runs that ended before, compared"
sed -e '/^trained/,$d' -e 's/lenet, title=<b>/mlp, lr=1/' run.log >killed.log
{ cat killed.log && echo "SIGINT (Ctrl-C) came to worker 0: training ends after epoch 3, saved"; } >halted.log
{ cat halted.log && echo "error: no room" && echo "SIGTERM came to worker 0: training ends"; } >failed.log
draws run.log killed.log halted.log failed.log --output page.html
has '<title>Comparison of runs</title>'
has "<p>The log stops before the training's end: the run goes on, or was killed.</p>"
has '<p>SIGINT (Ctrl-C) came to worker 0: training ends after epoch 3, saved</p>'
has '<p>error: no room</p>'
has '<tr><td>network</td><td>lenet</td><td>mlp</td><td>mlp</td><td>mlp</td></tr>'
has '<tr><td>title</td><td>&lt;b&gt;</td><td></td><td></td><td></td></tr>'

part "a page of what comes through a pipe, of logs of MXNet's trainers, of workers"
draws run.log --output file.html --title same
plot - --output pipe.html --title same <run.log >"$log" 2>&1 || fail "a page of standard input"
sed 's/standard input/run/' pipe.html | diff file.html - || fail "another page of the same log through a pipe"
for as in 'INFO:root:Epoch' Iteration; do
	sed "s/^Epoch/$as/" run.log >mxnet.log
	draws mxnet.log --output mxnet.html --title same
	grep -q '>samples/s<' mxnet.html && [ "$(grep -c '<svg ' mxnet.html)" = 3 ] || fail "no speed of lines with $as"
done
draws --average "it's two.log" run.log --output page.html --title same
has '<p></p>'
printf "hello\nerror: no room\n" >young.log
draws --average young.log run.log "it's two.log" --output page.html --title same
has '<p>Trained to its last epoch.</p>'
has '<td>4.000 s</td><td>50.0 %</td>'
refuses 2 'must be a .svg or .png file' --scaling 1:one.log 2:one.log --output page2.html
[ ! -e page2.html ] || fail "a page in spite of an error"

part "what gnuplot is told"
# In its place a program that keeps the commands and writes a picture to its standard output.
mkdir bin
cat >bin/gnuplot <<'PROGRAM'
#!/bin/sh
cat >commands.txt
touch ran
echo picture
[ ! -e fail_now ]
PROGRAM
chmod +x bin/gnuplot
(
	search="$PWD/bin:$PATH"
	draws one.log "it's two.log" --output told.svg --title "what's new"
	[ "$(cat told.svg)" = picture ] || fail "no picture"
	# Epoch, seconds so far, accuracies, losses.
	printf '%s\n' '1 10.5 0.5 0.4 3.5 ?' '2 21 0.6 ? 2.5 ?' '3 31.5 0.7 0.6 1.5 ?' >expected.txt
	sed -n '/^$run0 <</,/^END/p' commands.txt | sed '1d;$d' | diff - expected.txt || fail "the numbers of a run"
	grep -q "^set multiplot layout 2, 2 title 'what''s new' margins " commands.txt || fail "layout and title"
	[ "$(grep -c ^plot commands.txt)" = 4 ] || fail "$(grep -c ^plot commands.txt) panels"
	grep -q "using 2:4 with linespoints .*title ''.*using 2:3 with lines" commands.txt || fail "accuracy over time"
	[ "$(grep -E '^set x(label|tics)' commands.txt | uniq -c | awk '{ print $NF }' | tr '\n' ' ')" = \
		"'epoch' 1 training' autofreq 'epoch' 1 training' autofreq " ] || fail "ticks of few epochs"
	sed 's/Epoch.2/Epoch[10/' one.log >ten.log
	draws ten.log --output told.svg
	[ "$(grep -c '^set xtics autofreq$' commands.txt)" = 4 ] || fail "ticks of many epochs"
	draws one.log "it's two.log" --output told.svg --title "what's new"
	grep -q "title 'it''s two'" commands.txt || fail "the name of a run"
	draws "it's two.log" --output told.svg
	grep -q '^set multiplot layout 1, 2 margins ' commands.txt || fail "a log without loss"
	grep -v Time one.log >timeless.log
	draws timeless.log --output told.svg
	grep -v 'Epoch.1. Time' one.log >hole.log
	draws hole.log --output told.svg
	sed -n '/^$run0 <</,/^END/p' commands.txt | sed '1d;$d' | cut -d ' ' -f 2 >times.txt
	printf '%s\n' 10.5 '?' '?' | diff - times.txt || fail "the time after an epoch without one"
	draws timeless.log --output told.svg
	grep -q '^set multiplot layout 2, 1 margins ' commands.txt || fail "a log without times"
	draws --scaling "3:it's two.log" 1:one.log --output told.svg
	printf '%s\n' '1 1 "100 %"' '3 1.75 "58 %"' >expected.txt
	sed -n '/^$runs <</,/^END/p' commands.txt | sed '1d;$d' | diff - expected.txt || fail "speed-up"
	grep -q "^plot x .*title 'ideal'" commands.txt || fail "the ideal line"
	rm -f told.svg ran
	touch fail_now
	refuses 1 'x\.svg: gnuplot could not make it' one.log --output x.svg
	rm -f fail_now ran
	refuses 2 '--output x\.pdf: a name that ends in' one.log --output x.pdf
	refuses 2 '--output FILE is needed' one.log
	refuses 1 'none\.log: cannot be read' one.log none.log --output x.svg
	refuses 1 'no log has values of the metric "nll-loss"; others there: ' one.log --metric-names nll-loss \
		--output x.svg
	refuses 2 '"one\.log": with --scaling words are N:LOG' --scaling one.log 2:one.log --output x.svg
	refuses 2 'two logs of 2 workers' --scaling 2:one.log 2:one.log --output x.svg
	refuses 2 'at least two logs' --scaling 2:one.log --output x.svg
	refuses 1 'timeless\.log: it does not say how long' --scaling 1:timeless.log 2:one.log --output x.svg
	refuses 2 '--average is not for it' --scaling 1:one.log 2:one.log --average --output x.svg
	[ ! -e ran ] || fail "gnuplot was called for what cannot be drawn"
	finish
) || failures=$((failures + 1))

part "no gnuplot"
search="$PWD/none" refuses 1 'there is no program gnuplot in PATH.*gnuplot-nox' one.log --output x.svg

if ! command -v gnuplot >/dev/null; then
	part "gnuplot itself: left out, there is none (Debian: gnuplot-nox)"
	finish
fi
part "gnuplot itself"
draws one.log "it's two.log" --output curves.svg
grep -q '</svg>' curves.svg || fail "not a complete SVG file"
grep -q "it's two\|it&#39;s two\|it&apos;s two" curves.svg || fail "no legend in it"
draws --scaling 1:one.log "2:it's two.log" --output scaling.png
[ "$(head -c 4 scaling.png | od -An -tx1 | tr -d ' ')" = 89504e47 ] || fail "not a PNG file"
plot one.log --output none/x.svg >"$log" 2>&1 && fail "a folder that there is not"
expect 'error: none/x\.svg: cannot be written: No such file or directory'
finish
