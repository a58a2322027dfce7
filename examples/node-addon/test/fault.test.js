// SPDX-License-Identifier: BSD-2-Clause
// Devices that die or do not answer, beside others and beside what the program does.
'use strict';

const { pci, sleep, simulate, control, use } = require('./support');

simulate(__filename);

const assert = require('node:assert');
const { once } = require('node:events');
const fs = require('node:fs/promises');
const { test } = require('node:test');
const mlx5vfio = require('..');

// The longest time for which the JavaScript thread did not come round to a timer of 10 ms.
function watchThread() {
  const seen = { ticks: 0, longest: 0 };
  let last = process.hrtime.bigint();
  const timer = setInterval(() => {
    const now = process.hrtime.bigint();
    seen.longest = Math.max(seen.longest, Number(now - last) / 1e6);
    seen.ticks++;
    last = now;
  }, 10);
  seen.stop = () => clearInterval(timer);
  return seen;
}

test('one of two devices dies; closing it takes seconds and blocks nobody', async (t) => {
  const [dying, living] = await Promise.all([0, 1].map(async (n) => {
    const device = await use(t, n);
    device.reports = [];
    device.on('health', (health) => device.reports.push(health));
    return device;
  }));
  await control('hang 0');
  control('fatal 0 0x1 0x1234');
  await once(dying, 'health');
  const [health] = dying.reports;
  assert.deepStrictEqual(
    [health.fault, health.synd, health.extSynd, health.recoveryRequest, health.text],
    ['FW_FATAL', 1, 0x1234, true, 'fatal firmware error']);

  const thread = watchThread();
  await control('clock-rate 150'); // libmlx5 gives up on four commands after 60 s each
  const began = process.hrtime.bigint();
  const closed = dying.close();
  await control('page-request 1 4 20 spaced');
  await closed;
  const took = Number(process.hrtime.bigint() - began) / 1e6;
  await control('clock-rate 1');
  thread.stop();
  t.diagnostic(`close took ${took.toFixed(0)} ms; meanwhile ${thread.ticks} ticks of a 10 ms timer, ` +
    `the longest gap ${thread.longest.toFixed(0)} ms`);
  assert.ok(took > 1000 && thread.ticks > 20 && thread.longest < 500);

  assert.strictEqual(dying.reports.length, 1);
  assert.deepStrictEqual(living.reports, []);
  assert.ok(living.stats().wakeups > 0);
  assert.strictEqual(living.health().fault, null);
  await control('heal 0');
});

test('every fault has its name', async (t) => {
  const faults = {
    'nic-disabled 0': 'NIC_DISABLED',
    'nic-reset 0': 'NIC_RESET',
    'pci-offline 0': 'PCI_OFFLINE',
    'freeze 0': 'STALLED',
    'aer 0 fatal': 'PCI_ERROR',
  };
  for (const [line, name] of Object.entries(faults)) {
    const device = await use(t, 0);
    const died = new Promise((resolve) => {
      device.on('health', (health) => health.fault && resolve(health));
    });
    await control(line);
    assert.strictEqual((await died).fault, name);
    await control('heal 0');
    await device.close();
  }
});

test('devices that do not start stop neither files nor other devices', async () => {
  const stuck = [0, 1, 2, 3, 4, 5];
  await control('init-stuck * on');
  await control('init-stuck 7 off');
  const openings = stuck.map((n) => mlx5vfio.open(pci(n)));
  await sleep(50);
  const began = Date.now();
  await fs.readFile(__filename);
  const device = await mlx5vfio.open(pci(7));
  await device.close();
  assert.ok(Date.now() - began < 5000);
  await control('init-stuck * off');
  await Promise.all(openings.map(async (opening) => (await opening).close()));
});
