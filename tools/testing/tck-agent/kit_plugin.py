"""A pytest plugin for the A2A test kit, which has no option for credentials.

It adds `Authorization` from A2A_AUTHORIZATION to requests of httpx and requests, except in tests of unauthenticated
access and in requests that set the header. With KIT_RESULTS, it writes one line of JSON per test to this file.
Run: `PYTHONPATH=<this folder> python -m pytest -p kit_plugin ...`
"""

import json
import os

import httpx
import pytest
import requests

_value = os.environ.get('A2A_AUTHORIZATION', '')
_results = os.environ.get('KIT_RESULTS', '')
_unauthenticated = (
    'without_auth',
    'missing_auth',
    'unauthenticated',
    'no_auth',
    'invalid_auth',
    'authentication_required',
    'access_controls',
    'scheme_validation',
)
_adds = True


def _wants(headers) -> bool:
    return _adds and _value != '' and 'authorization' not in {name.lower() for name in headers}


def _patch(owner, name, prepare):
    original = getattr(owner, name)

    def patched(self, request, *args, **kwargs):
        prepare(request)
        return original(self, request, *args, **kwargs)

    setattr(owner, name, patched)


def _add(request):
    if _wants(request.headers):
        request.headers['Authorization'] = _value


_patch(httpx.Client, 'send', _add)
_patch(httpx.AsyncClient, 'send', _add)
_patch(requests.Session, 'send', _add)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    global _adds
    _adds = not any(part in item.name for part in _unauthenticated)
    yield
    _adds = True


def _reason(report) -> str:
    if report.outcome == 'skipped' and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, 'reprcrash', None)
    return str(report.longrepr or '') if crash is None else crash.message


def pytest_runtest_logreport(report):
    if _results == '' or (report.when != 'call' and report.outcome == 'passed'):
        return
    outcome = 'xfailed' if hasattr(report, 'wasxfail') and report.outcome == 'skipped' else report.outcome
    line = {'test': report.nodeid, 'outcome': outcome, 'reason': _reason(report).split('\n')[0][:300]}
    with open(_results, 'a', encoding='utf-8') as file:
        file.write(json.dumps(line) + '\n')
