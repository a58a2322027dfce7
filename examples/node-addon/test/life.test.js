// SPDX-License-Identifier: BSD-2-Clause
// The end of a process with devices open: the exit status is right and nothing is said.
'use strict';

const assert = require('node:assert');
const { test } = require('node:test');
const { run, rounds, ROUNDS } = require('./support');

const quiet = (result) => assert.strictEqual(result.stderr, '');

function ends(mode, code, { faults, count = ROUNDS, check = quiet } = {}) {
  test(`${mode}: ${count} rounds end with status ${code}`, () => rounds(count, async () => {
    const result = await run(mode, { faults });
    assert.deepStrictEqual({ code: result.code, signal: result.signal }, { code, signal: null },
      result.stderr);
    check(result);
  }));
}

ends('unref', 0);
ends('close-unreferenced', 0, {
  count: 5,
  check: (result) => assert.strictEqual(result.stdout, 'closed\n'),
});
ends('exit', 3);
ends('exit-in-handler', 4, { faults: 'fatal.faults', count: 5 });
ends('throw', 1, {
  faults: 'fatal.faults',
  check: (result) => assert.match(result.stderr, /Error: thrown by a handler\n/),
});
ends('caught', 0, {
  count: 1,
  check(result) {
    quiet(result);
    assert.strictEqual(result.stdout, 'thrown by a handler\n'.repeat(ROUNDS));
  },
});
ends('reject', 1, {
  faults: 'fatal.faults',
  count: 3,
  check: (result) => assert.match(result.stderr, /Error: rejected by a handler\n/),
});
ends('unheard', 1, {
  faults: 'fatal.faults',
  count: 3,
  check: (result) => assert.match(result.stderr, /Error: 0000:b0:00.0: fatal firmware error/),
});
ends('exit-while-opening', 5, { faults: 'stuck.faults', count: 5 });
ends('exit-while-closing', 6, { faults: 'dead.faults', count: 5 });
ends('unref-while-closing', 0, { faults: 'dead.faults', count: 5 });
ends('exit-with-workers', 7, { count: 5 });
