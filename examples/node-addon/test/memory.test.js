// SPDX-License-Identifier: BSD-2-Clause
// 200 rounds of open and close leave neither file descriptors behind nor memory, but for what libmlx5
// does not free: the entries of event queues that were closed.
'use strict';

const { pci, simulate } = require('./support');

simulate(__filename);

const assert = require('node:assert');
const fs = require('node:fs');
const { test } = require('node:test');
const mlx5vfio = require('..');

const ENTRIES = 256 * 64; // bytes of the queue for port changes

async function measure() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await new Promise(setImmediate); // finalizers
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { fds: fs.readdirSync('/proc/self/fd').length, rss, heapUsed };
}

async function round() {
  const device = await mlx5vfio.open(pci(0));
  device.health();
  await device.close();
  await assert.rejects(mlx5vfio.open('0000:de:00.0'));
}

test('200 rounds', async (t) => {
  const seen = [];
  for (let i = 0; i < 200; i++) {
    await round();
    if (i % 50 === 49) {
      seen.push(await measure());
    }
  }
  const kb = (bytes) => `${(bytes / 1024).toFixed(0)} kB`;
  for (const { fds, rss, heapUsed } of seen) {
    t.diagnostic(`${fds} fds, ${kb(rss)} resident, ${kb(heapUsed)} of heap`);
  }
  const first = seen[1]; // after 100 rounds everything has been used
  const last = seen[seen.length - 1];
  assert.strictEqual(last.fds, first.fds);
  assert.ok(last.heapUsed - first.heapUsed < 300e3);
  assert.ok(last.rss - first.rss < 3e6 + 100 * ENTRIES);
});
