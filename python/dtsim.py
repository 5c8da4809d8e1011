"""dtsim in Python: scenarios simulated by one warm process (`dtsim serve`), for notebooks and for searches of others.

    import dtsim

    dtsim.run('scenario.yaml', set={'strategy.tensor': 4})['iteration_time_s']
    dtsim.sweep('scenario.yaml', {'strategy.tensor': [1, 2, 4], 'batch.micro': [1, 2]}, engine='fast')
    dtsim.results('llama.sweep')

Needs the program (the environment's DTSIM names it, or it stands in PATH or in the same installation) and Python's
standard library; sweep and results need pandas too.
"""
import atexit
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import subprocess
import threading

__all__ = ['Error', 'Server', 'plan', 'program', 'results', 'run', 'submit', 'sweep']


_DEEPEST, _LONGEST = 1000, (8 << 20) - 64        # of a request; the program takes 2,048, and 8 MiB with the id


class Error(Exception):
    """What dtsim refuses. `errors`: a list of {file, line, column, message, rule}; `exit_code`: as of `dtsim run`
    (4: an input is wrong, 5: the scenario is not possible, 7: the budget is spent, 130: cancelled); `metrics`: what was
    found all the same, or None."""

    def __init__(self, errors, exit_code, metrics=None):
        super().__init__('\n'.join(_line(error) for error in errors))
        self.errors = errors
        self.exit_code = exit_code
        self.metrics = metrics

    def __reduce__(self):                        # so that processes can pass it on
        return Error, (self.errors, self.exit_code, self.metrics)


def _line(error):
    place = [str(error[key]) for key in ('file', 'line', 'column') if error.get(key) is not None]
    return ': '.join([':'.join(place)] * bool(place) + [error['message']])


def program():
    """The path of the program."""
    prefix = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    installed = os.path.join(prefix, 'bin', 'dtsim')     # this file is PREFIX/lib/python3/dist-packages/dtsim.py
    found = os.environ.get('DTSIM') or (os.access(installed, os.X_OK) and installed) or shutil.which('dtsim')
    if not found:
        raise FileNotFoundError("the program dtsim is not in PATH; set the environment's DTSIM to its path")
    return found


def _whole(digits):
    if not -2**63 <= int(digits) < 2**63:
        raise ValueError(f'expected a whole number of 64 bits, or a float, found {digits}')


def _distinct(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(f'expected each key once, found {max(keys, key=keys.count)!r} again')


def _text(request):
    """A request as JSON that the program reads; ValueError: it would not. Numbers of numpy are numbers too."""
    def plain(value):
        if hasattr(value, 'item'):
            return value.item()
        raise TypeError(f'expected what JSON has, found {value!r}')

    try:
        text = json.dumps(request, allow_nan=False, default=plain)
        json.loads(text, object_pairs_hook=_distinct, parse_int=_whole)
        if '\\ud' in text:                       # half of a pair of surrogates alone is no character
            json.dumps(request, ensure_ascii=False, default=plain).encode()
    except RecursionError:
        raise ValueError('expected fewer lists and mappings in each other') from None
    words = re.sub(r'"(?:[^"\\]|\\.)*"', '', text) if text.count('[') + text.count('{') > _DEEPEST else ''
    if any(depth > _DEEPEST for depth in itertools.accumulate((mark in '[{') - (mark in ']}') for mark in words)):
        raise ValueError(f'expected at most {_DEEPEST} lists and mappings in each other')
    if re.search(r'(?<!\\)(\\\\)*\\u0000', text):
        raise ValueError('expected text without NUL')
    if len(text) > _LONGEST:
        raise ValueError(f'expected a request of at most {_LONGEST} bytes, found {len(text)}; put the scenario into a file')
    return text


def _request(scenario, set=None, engine=None, budget=None, advice=True):
    request = {'scenario' if isinstance(scenario, dict) else 'base':
               scenario if isinstance(scenario, dict) else os.path.abspath(os.fspath(scenario))}
    if set:
        request['set'] = set
    if engine is not None:
        request['engine'] = engine
    if budget is not None:
        request['budget'] = budget
    if not advice:
        request['advice'] = False
    return request


class _Future(concurrent.futures.Future):
    """The metrics of a request. cancel() cancels it also while it is simulated."""

    def cancel(self):
        if self.done():
            return self.cancelled()
        self._server._write(_text({'cancel': self._id}))
        return super().cancel()


class Server:
    """A process of `dtsim serve`, which remembers files, kernels and collectives from one scenario to the next. jobs:
    scenarios at once; left out: one a processor. budget: of each scenario, such as '30 s' or '4 GiB'."""

    def __init__(self, jobs=None, budget=None):
        command = [program(), 'serve']
        if jobs is not None:
            command += ['-j', str(jobs)]
        for limit in [budget] if isinstance(budget, str) else budget or []:
            command += ['--budget', limit]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding='utf-8',
                                         start_new_session=True)         # Ctrl-C is the caller's
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._waiting = {}
        self._last = 0
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """Waits for all answers, and ends the process."""
        with self._lock:
            waiting = list(self._waiting.values())
        concurrent.futures.wait(waiting)
        with self._writing:
            if not self._process.stdin.closed:
                try:
                    self._process.stdin.close()
                except BrokenPipeError:
                    pass
        self._process.terminate()                # a process that was forked may hold its standard input open
        self._process.wait()
        self._reader.join(2)
        if not self._reader.is_alive():          # else whoever holds the other end open keeps it from being closed
            self._process.stdout.close()

    def submit(self, scenario, set=None, engine=None, budget=None, advice=True):
        """As run(), but gives a concurrent.futures.Future of the metrics at once."""
        text = _text(_request(scenario, set, engine, budget, advice))
        future = _Future()
        with self._lock:
            self._last += 1
            future._server, future._id = self, self._last
            self._waiting[self._last] = future
        self._write(f'{{"id": {future._id}, {text[1:]}')
        return future

    def run(self, scenario, set=None, engine=None, budget=None, advice=True):
        """The metrics of a scenario, as `dtsim run --json` prints them. scenario: the path of its file, or what that
        would hold. set: {path: value}, as --set. engine: simgrid, fast or ideal; left out: as `dtsim run`.
        advice=False: where memory is short, do not look for what would help. Error: what was refused, and why."""
        return self.submit(scenario, set, engine, budget, advice).result()

    def rows(self, scenario, sets, **options):
        """A dict for each variation, in order: what was set, status (ok, infeasible or error), reason, metrics. sets:
        {path: [value, ...]}, of which all combinations count, or a list of {path: value}. A value that JSON lacks is an
        error of its row."""
        if isinstance(sets, dict):
            sets = [dict(zip(sets, values)) for values in itertools.product(*sets.values())]
        futures = [(one, self._tried(scenario, one, **options)) for one in sets]
        return [_row(one, future) for one, future in futures]

    def _tried(self, scenario, one, **options):
        try:
            return self.submit(scenario, one, **options)
        except ValueError as error:
            future = concurrent.futures.Future()
            future.set_exception(Error([{'message': str(error)}], 4))
            return future

    def _write(self, text):
        try:
            with self._writing:
                self._process.stdin.write(text + '\n')
                self._process.stdin.flush()
        except (OSError, ValueError):
            self._fail()
        if self._ended:                          # nobody reads answers any more
            self._fail()

    def _read(self):
        try:
            for line in self._process.stdout:
                self._answer(json.loads(line))
        except Exception:                        # half an answer, of a process that was killed, or anything else
            self._process.terminate()
        finally:
            self._fail()

    def _watch(self):
        """A program that the process started, or one that was forked beside it, may hold its standard output open."""
        self._process.wait()
        self._reader.join(2)                     # what it said before it ended
        self._fail()

    def _answer(self, answer):
        error = Error(answer['errors'], answer['exit_code'], answer.get('metrics')) if 'errors' in answer else None
        metrics = answer['metrics'] if error is None else None
        with self._lock:
            future = self._waiting.pop(answer['id'])
        if not future.set_running_or_notify_cancel():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(metrics)

    def _fail(self):
        """The process has ended: what still waits gets no answer."""
        with self._lock:
            self._ended = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(Error([{'message': "'dtsim serve' has ended"}], 1))


def _row(sets, future):
    try:
        return {**sets, 'status': 'ok', **_flat(future.result())}
    except Error as error:
        status = 'infeasible' if error.exit_code == 5 else 'timeout' if error.exit_code == 7 else 'error'
        return {**sets, 'status': status, 'rule': error.errors[0].get('rule'), 'reason': error.errors[0]['message'],
                **_flat(error.metrics or {})}


def _flat(values, prefix=''):
    """{'breakdown_s': {'bubble': 1}} as {'breakdown_s.bubble': 1}."""
    flat = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat.update(_flat(value, prefix + key + '.'))
        else:
            flat[prefix + key] = value
    return flat


_shared = None
_shared_lock = threading.Lock()


def _server():
    """The process that the functions of this module share; another one after a fork, or where it has ended."""
    global _shared
    with _shared_lock:
        if _shared is None or _shared[0] != os.getpid() or _shared[1]._ended or _shared[1]._process.poll() is not None:
            server = Server()
            atexit.register(server.close)
            _shared = os.getpid(), server
        return _shared[1]


def submit(scenario, set=None, **options):
    """Server.submit of a process that all calls share."""
    return _server().submit(scenario, set, **options)


def run(scenario, set=None, **options):
    """Server.run of a process that all calls share."""
    return _server().run(scenario, set, **options)


def _pandas():
    try:
        import pandas
    except ImportError:
        raise ImportError('this function of dtsim gives a pandas.DataFrame, and pandas is not installed; '
                          'dtsim.Server().rows() needs none') from None
    return pandas


def sweep(scenario, sets, **options):
    """Server.rows of a process that all calls share, as a DataFrame."""
    pandas = _pandas()
    return pandas.DataFrame(_server().rows(scenario, sets, **options))


def _said(arguments, codes=(0,)):
    """What a command of the program prints that ends with one of these exit codes."""
    done = subprocess.run([program(), *arguments], capture_output=True, encoding='utf-8')
    if done.returncode in codes:
        return done.stdout
    if f"unknown command '{arguments[0]}'" in done.stderr:
        raise NotImplementedError(f"'{program()}' has no command '{arguments[0]}'; a later release of dtsim has it")
    raise Error([{'message': line} for line in done.stderr.splitlines()], done.returncode)


def results(*folders, top=None, where=None):
    """The rows of `dtsim sweep`'s folders as a DataFrame: what was set, how it ended (status, reason), metrics. top: so
    many of the best; where: only rows for which the expression is true."""
    pandas = _pandas()
    arguments = ['results', '--json']
    if top is not None:
        arguments += ['--top', str(top)]
    if where is not None:
        arguments += ['--where', where]
    rows = [json.loads(line) for line in _said([*arguments, '--', *map(os.fspath, folders)]).splitlines()]
    return pandas.DataFrame([_flat({**row.pop('point', {}), **row.pop('metrics', {}), **row}) for row in rows])


def plan(scenario, *options, set=None):
    """What `dtsim plan --json` prints, as Python's lists and dicts. options: further words of its command line.
    NotImplementedError: this build of dtsim has no such command."""
    words = ['plan', os.fspath(scenario), '--json', *options]
    for path, value in (set or {}).items():
        words += ['--set', f'{path}={value if isinstance(value, str) else json.dumps(value)}']
    printed = _said(words, (0, 3))               # 3: 'counts' and 'verified' say what failed
    try:
        return json.loads(printed)
    except json.JSONDecodeError:                 # a row a line
        return [json.loads(line) for line in printed.splitlines()]
