# SPDX-License-Identifier: Apache-2.0
"""The centre's kit without what it is for: stand-ins for ReFrame, Spack and EasyBuild, for test_kit.sh.

kit.py reframe FILE LOG        the figures that a ReFrame test finds in a log, a line each
kit.py spack FILE on|off       the arguments of configure, with every variant on or off, a line each
kit.py easybuild FILE          the words of configopts, and sources, a line each
"""
import ast
import re
import sys
import types


class Anything:
    """What a recipe may call, with any arguments."""

    def __getattr__(self, name):
        return Anything()

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and isinstance(args[0], type) else Anything()


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def load(path, **names):
    with open(path, encoding='utf-8') as file:
        code = compile(file.read(), path, 'exec')
    scope = dict(names, __name__='kit')
    exec(code, scope)
    return scope


def reframe(path, log):
    with open(log, encoding='utf-8') as file:
        text = file.read()
    rows = []

    def found(pattern, where):
        return re.search(pattern, text) is not None

    def single(pattern, where, tag, kind, item=0):
        return kind([m.group(tag) for m in re.finditer(pattern, text)][item])

    def same(*_):
        return lambda function: function

    sanity = module('reframe.utility.sanity', assert_found=found, extractsingle=single,
                    assert_ge=lambda value, least: value >= least)
    module('reframe.utility', sanity=sanity)
    core = module('reframe', run_after=same, run_before=same, simple_test=lambda c: c)
    core.utility = sys.modules['reframe.utility']
    core.RunOnlyRegressionTest = type('RunOnlyRegressionTest', (), {'stderr': None})
    # ReFrame's own words inside a class are built in there.
    tests = load(path, run_after=same, run_before=same, sanity_function=lambda f: f,
                 performance_function=same, parameter=lambda values: values[0])
    for name, test in tests.items():
        if not isinstance(test, type) or not hasattr(test, 'choose'):
            continue
        one = test()
        one.take_module()
        one.choose()
        rows.append(name + ' ' + ' '.join(one.executable_opts))
        for check in ('has_ranks', 'has_learned', 'total_throughput', 'throughput_each', 'throughput'):
            try:
                rows.append('%s %s %s' % (name, check, getattr(one, check)()))
            except (AttributeError, IndexError):
                pass
    return rows


def spack(path, state):
    names, made = [], {}

    class Spec:
        def satisfies(self, text):
            return state == 'on'

        def __getitem__(self, name):
            if name not in made['depends']:
                raise KeyError(name + ' is no dependency')
            return types.SimpleNamespace(prefix='/' + name, mpicc='/mpi/bin/mpicc')

    made['depends'] = set()
    made['variants'] = set()

    def depends_on(text, **_):
        made['depends'].add(re.match(r'[a-z0-9-]+', text).group())
        assert _.get('when', '+x').lstrip('+') in made['variants'] | {'x'}, text

    def variant(name, **_):
        made['variants'].add(name)

    package = module('spack.package', AutotoolsPackage=object, depends_on=depends_on, variant=variant,
                     license=Anything(), version=Anything(), Executable=Anything(), make=Anything())
    package.__all__ = [n for n in package.__dict__ if not n.startswith('_')]
    module('spack', package=package)
    recipe = load(path)['Muster']()
    recipe.spec = Spec()
    names += recipe.configure_args()
    return names


def easybuild(path):
    found = load(path, SYSTEM='SYSTEM', SHLIB_EXT='so', SOURCELOWER_TAR_GZ='%(namelower)s-%(version)s.tar.gz')
    for word in ('easyblock', 'name', 'version', 'homepage', 'description', 'toolchain', 'sources', 'sanity_check_paths',
                 'moduleclass'):
        assert word in found, '%s: no %s' % (path, word)
    return found['configopts'].split() + ['sources ' + str(found['sources'])]


if __name__ == '__main__':
    kinds = {'reframe': reframe, 'spack': spack, 'easybuild': easybuild}
    ast.parse(open(sys.argv[2], encoding='utf-8').read(), sys.argv[2])
    print('\n'.join(kinds[sys.argv[1]](*sys.argv[2:])))
