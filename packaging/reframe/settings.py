# SPDX-License-Identifier: Apache-2.0
"""For ReFrame 4: this machine, and a Slurm without accounting (squeue: the scheduler "slurm" wants sacct). For
`reframe -C packaging/reframe/settings.py --system muster:local`, or muster:slurm; a centre has a file of its own."""

site_configuration = {
    'systems': [{
        'name': 'muster',
        'hostnames': ['.*'],
        'partitions': [
            {'name': 'local', 'scheduler': 'local', 'launcher': 'mpirun', 'environs': ['default'], 'max_jobs': 1},
            {'name': 'slurm', 'scheduler': 'squeue', 'launcher': 'srun', 'environs': ['default'], 'max_jobs': 1},
        ],
    }],
    'environments': [{'name': 'default'}],
}
