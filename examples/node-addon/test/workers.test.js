// SPDX-License-Identifier: BSD-2-Clause
// Worker threads that end in every way with devices open. A worker whose loop still has a handle makes
// Node abort the process, so that this file ending well says that none had.
'use strict';

const { pci, sleep, simulate, control, rounds, ROUNDS } = require('./support');

simulate(__filename);

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');

const program = `
  const { parentPort, workerData: { devices, mode } } = require('node:worker_threads');
  const mlx5vfio = require(${JSON.stringify(path.join(__dirname, '..'))});
  (async () => {
    const opened = await Promise.all(devices.map(async (pciName) => {
      const device = await mlx5vfio.open(pciName, { interval: 20 });
      device.on('health', (health) => {
        parentPort.postMessage('health');
        if (mode === 'throw-in-handler') throw new Error('thrown by a handler');
        if (mode === 'busy-handler') for (;;);
      });
      return device;
    }));
    parentPort.postMessage('open');
    if (mode === 'natural') opened.forEach((device) => device.unref());
    if (mode === 'exit') process.exit(7);
    if (mode === 'throw') throw new Error('thrown');
    if (mode === 'close') await Promise.all(opened.map((device) => device.close()));
    if (mode === 'terminate-while-closing') {
      setInterval(() => {}, 1000); // it may be closed before it is terminated
      opened.forEach((device) => device.close());
    }
  })();
`;

function start(mode, devices) {
  const worker = new Worker(program, { eval: true, workerData: { mode, devices } });
  const errors = [];
  worker.on('error', (error) => errors.push(error.message));
  const ended = new Promise((resolve) => { worker.once('exit', (code) => resolve({ code, errors })); });
  // or its end, when it fails before
  const heard = () => Promise.race([
    new Promise((resolve) => { worker.once('message', resolve); }), ended]);
  return { worker, ended, heard };
}

const pair = (n) => [pci(2 * n), pci(2 * n + 1)];

// Two workers at a time, each with two devices of its own.
function ends(mode, want, { act = () => {}, count = ROUNDS } = {}) {
  test(`${mode}: ${count} rounds`, async () => {
    const free = [0, 1];
    await rounds(count, async () => {
      const place = free.pop();
      const { worker, ended, heard } = start(mode, pair(place));
      await heard();
      await act(worker);
      assert.deepStrictEqual(await ended, want);
      free.push(place);
    });
  });
}

const terminated = { act: (worker) => worker.terminate() };

ends('natural', { code: 0, errors: [] });
ends('exit', { code: 7, errors: [] });
ends('throw', { code: 1, errors: ['thrown'] });
ends('terminate', { code: 1, errors: [] }, terminated);
ends('close', { code: 0, errors: [] }, { count: 5 });
ends('terminate-while-closing', { code: 1, errors: [] }, { count: 5, ...terminated });

// The code is 0 for one that had not started. A device that was being opened closes a little later.
test(`terminate at any moment: ${ROUNDS} rounds`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const { worker, ended } = start('terminate', pair(round % 4));
    await sleep(10 + round);
    worker.terminate();
    const { code, errors } = await ended;
    assert.ok(code <= 1);
    assert.deepStrictEqual(errors, []);
  }
});

test('a handler throws, and one never returns', async () => {
  for (const [mode, errors] of [['throw-in-handler', ['thrown by a handler']], ['busy-handler', []]]) {
    const { worker, ended, heard } = start(mode, [pci(4)]);
    await heard();
    const handled = heard();
    await control('syndrome 4 7');
    await handled;
    if (mode === 'busy-handler') {
      worker.terminate();
    }
    assert.deepStrictEqual(await ended, { code: 1, errors });
    await control('heal 4');
  }
});

test('a dead device is left to its closing, which outlives the worker', async () => {
  const { worker, ended, heard } = start('terminate', [pci(5)]);
  await heard();
  await control('hang 5');
  const dead = heard();
  await control('fatal 5');
  await dead;
  const began = Date.now();
  worker.terminate();
  await ended;
  assert.ok(Date.now() - began < 1000);
  await control('clock-rate 600');
  const closed = async () => / open=0 /.test(await control('stats 5'));
  while (!await closed()) {
    await sleep(20);
  }
  await control('clock-rate 1');
  await control('heal 5');
});

test('many workers at once, and nothing is left of them', async () => {
  await sleep(300); // devices that were being opened when their worker was terminated
  const before = fs.readdirSync('/proc/self/fd').length;
  for (let round = 0; round < 3; round++) {
    const workers = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => start('natural', [pci(n)]));
    for (const { ended } of workers) {
      assert.deepStrictEqual(await ended, { code: 0, errors: [] });
    }
  }
  assert.ok(fs.readdirSync('/proc/self/fd').length <= before);
});
