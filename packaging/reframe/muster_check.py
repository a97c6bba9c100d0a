# SPDX-License-Identifier: Apache-2.0
"""A test of Muster for ReFrame 4: LeNet on pictures of digits in each store, and a benchmark whose last lines are those
that EESSI's tests of PyTorch and TensorFlow look for.

    reframe --exec-policy=serial -c packaging/reframe/muster_check.py -r

needs muster in the PATH, or MUSTER: its path, or the module that MUSTER_MODULE names. --exec-policy=serial: else tests of
one node disturb each other's speeds. MUSTER_TASKS (3): ranks."""
import os

import reframe as rfm
import reframe.utility.sanity as sn

# The same words as in EESSI's tests.
TOTAL = r'Total img/sec on %s .PU\(s\):\s+(?P<perf>\S+)'
EACH = r'Img/sec per .PU:\s+(?P<perf>\S+)'
VALIDATED = r'Epoch\[\d+\] Validation-accuracy=(?P<accuracy>\S+)'


class MusterTest(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    maintainers = ['Muster']
    muster = os.environ.get('MUSTER', 'muster')
    executable = muster + ' train'
    num_tasks = int(os.environ.get('MUSTER_TASKS', '3'))
    time_limit = '10m'

    @run_after('init')
    def take_module(self):
        self.num_tasks_per_node = self.num_tasks
        if os.environ.get('MUSTER_MODULE'):
            self.modules = [os.environ['MUSTER_MODULE']]


@rfm.simple_test
class MusterSpeed(MusterTest):
    """Random pictures: images/s."""
    network = parameter(['lenet', 'resnet'])

    @run_before('run')
    def choose(self):
        # Every rank is a worker, as EESSI's tests count: no servers.
        self.executable_opts = ['--network', self.network, '--benchmark', '1', '--num-epochs', '1', '--num-batches',
                                '200' if self.network == 'lenet' else '10', '--kv-store',
                                'dist_allreduce' if self.num_tasks > 1 else 'local']
        if self.network == 'resnet':
            self.executable_opts += ['--image-shape', '3,32,32', '--num-layers', '20', '--batch-size', '16']

    @sanity_function
    def has_ranks(self):
        return sn.assert_found(TOTAL % self.num_tasks, self.stderr)

    @performance_function('img/sec')
    def total_throughput(self):
        return sn.extractsingle(TOTAL % '[0-9]+', self.stderr, 'perf', float)

    @performance_function('img/sec')
    def throughput_each(self):
        return sn.extractsingle(EACH, self.stderr, 'perf', float)


@rfm.simple_test
class MusterLearns(MusterTest):
    """Digits, which muster draws itself: what two epochs of LeNet must have learned."""
    store = parameter(['dist_sync', 'dist_sharded', 'dist_allreduce'])

    @run_before('run')
    def choose(self):
        self.prerun_cmds = [self.muster + ' digits --output digits --train 6400 --test 1000']
        self.executable_opts = ['--network', 'lenet', '--data-dir', 'digits', '--lr', '0.05', '--num-epochs', '2',
                                '--kv-store', self.store]

    @sanity_function
    def has_learned(self):
        return sn.assert_ge(sn.extractsingle(VALIDATED, self.stderr, 'accuracy', float, item=-1), 0.9)

    @performance_function('img/sec')
    def throughput(self):
        return sn.extractsingle(r'trained \d+ samples in \S+ s: (?P<perf>\S+) samples/sec', self.stderr, 'perf', float)
