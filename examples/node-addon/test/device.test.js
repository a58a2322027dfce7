// SPDX-License-Identifier: BSD-2-Clause
// A healthy device: opening and its failures, what it tells, callback scopes, closing.
'use strict';

const { pci, sleep, simulate, control, use } = require('./support');

simulate(__filename);

const assert = require('node:assert');
const { once, EventEmitter } = require('node:events');
const fs = require('node:fs');
const { test } = require('node:test');

const libuvs = () => new Set(fs.readFileSync('/proc/self/maps', 'utf8').match(/\S*\/libuv\S*/g));
const libuvsBefore = libuvs();
const mlx5vfio = require('..');

test('uses the libuv of Node and no other', (t) => {
  t.diagnostic(`libuv of the addon ${mlx5vfio.versions.uv}, of Node ${process.versions.uv}, ` +
    `mapped: ${[...libuvs()].join(', ') || 'no libuv.so'}`);
  assert.strictEqual(mlx5vfio.versions.uv, process.versions.uv);
  assert.deepStrictEqual(libuvs(), libuvsBefore);
  if (!process.config.variables.node_shared_libuv) {
    assert.strictEqual(libuvs().size, 0);
  }
});

test('says why a device cannot be opened', async () => {
  const cases = [
    ['0000:de:00.0', 'ENOENT', /^cannot open 0000:de:00.0: there is no such PCI device$/],
    ['0000:af:00.0', 'ENODEV', /it is not an mlx5 device: its PCI ids are/],
    ['b0:00', 'EINVAL', /the PCI name is malformed/],
    ['x'.repeat(1000), 'EINVAL', /the PCI name is malformed/],
    ['', 'EINVAL', /the PCI name is malformed/],
  ];
  for (const [name, code, message] of cases) {
    await assert.rejects(mlx5vfio.open(name), { code, message });
  }
  await control('deny 0');
  await assert.rejects(mlx5vfio.open(pci(0)), { code: 'EACCES', message: /no permission/ });
  await control('heal 0');
  await control('map-fail 0');
  await assert.rejects(mlx5vfio.open(pci(0)), { code: 'ENOMEM', errno: -12 });
});

test('refuses arguments that make no sense', async () => {
  await assert.rejects(mlx5vfio.open(), TypeError);
  await assert.rejects(mlx5vfio.open(7), TypeError);
  for (const interval of [-1, 5, 1.5, NaN, '20', 3600001]) {
    await assert.rejects(mlx5vfio.open(pci(0), { interval }), RangeError);
  }
});

test('a device has one owner', async (t) => {
  const device = await use(t, 0);
  await assert.rejects(mlx5vfio.open(pci(0)), { code: 'EBUSY' });
});

test('health and statistics are plain objects', async (t) => {
  const device = await use(t, 0);
  assert.ok(device instanceof EventEmitter && device instanceof mlx5vfio.Device);
  assert.strictEqual(device.pciName, pci(0));
  assert.strictEqual(device.guarded, true);

  const health = device.health();
  assert.strictEqual(health.fault, null);
  assert.strictEqual(health.warning, false);
  assert.match(health.firmware, /^\d+\.\d+\.\d{4}$/);
  assert.strictEqual(health.assertVar.length, 5);

  await control('page-request 0 4');
  while (device.stats().wakeups === 0) {
    await sleep(10);
  }
  for (const [name, value] of Object.entries(device.stats())) {
    assert.ok(Number.isInteger(value) && value >= 0, name);
  }
});

test('a promise resolved in a handler runs at once', async (t) => {
  const device = await use(t, 0);
  const order = [];
  const done = new Promise((resolve) => {
    device.once('health', () => {
      setImmediate(() => { order.push('immediate'); resolve(); });
      Promise.resolve().then(() => order.push('promise'));
      process.nextTick(() => order.push('tick'));
      order.push('handler');
    });
  });
  await control('syndrome 0 7');
  await done;
  assert.deepStrictEqual(order, ['handler', 'tick', 'promise', 'immediate']);
  await control('heal 0');
});

test('a warning comes and goes', async (t) => {
  const device = await use(t, 0);
  control('syndrome 0 0x10 0x1234');
  const [warning] = await once(device, 'health');
  assert.deepStrictEqual([warning.fault, warning.warning, warning.syndText, warning.extSynd],
    [null, true, 'high temperature', 0x1234]);
  control('syndrome 0 0');
  const [cleared] = await once(device, 'health');
  assert.strictEqual(cleared.warning, false);
});

test('the kernel asks for the device back', async (t) => {
  const device = await use(t, 0);
  control('remove-request 0');
  await once(device, 'removal');
});

test('events that cannot be handled are an error, once', async (t) => {
  const device = await use(t, 0);
  let errors = 0;
  device.on('error', () => errors++);
  const first = new Promise((resolve) => { device.once('error', resolve); });
  await control('fail 0 108 4'); // MANAGE_PAGES, once
  await control('page-request 0 4');
  const error = await first;
  assert.match(error.code, /^E[A-Z]+$/);
  assert.match(error.message, /^0000:b0:00.0: events are not handled for now: /);
  await sleep(200);
  assert.strictEqual(errors, 1);
  await control('heal 0');
});

test('closing: once for all callers, its event, and nothing after it', async (t) => {
  const device = await use(t, 0);
  let events = 0;
  device.on('close', () => events++);
  const before = device.close();
  assert.throws(() => device.health(), { code: 'EBADF' });
  await Promise.all([before, device.close(), device.unref().ref().close()]);
  await sleep(0);
  assert.strictEqual(events, 1);
  for (const call of ['health', 'stats']) {
    assert.throws(() => device[call](), { code: 'EBADF', message: 'the device is closed' });
  }
  device.ref().unref();
  await device.close();
});

test('a device closed in its own handler', async (t) => {
  const device = await use(t, 0);
  const closed = new Promise((resolve) => {
    device.once('health', () => resolve(device.close()));
  });
  await control('syndrome 0 7');
  await closed;
  await control('heal 0');
});

// By force, of the event queue that the addon has opened: the first after libmlx5's own.
async function overrunPortQueue(n) {
  for (let number = 2; number < 64; number++) {
    try {
      return await control(`overrun ${n} ${number}`);
    } catch {
      // no such queue
    }
  }
  throw new Error('no event queue');
}

test('port changes that were lost are told, and those after them are heard', async (t) => {
  const device = await use(t, 0);
  for (let round = 0; round < 3; round++) {
    overrunPortQueue(0);
    const [error] = await once(device, 'portError');
    assert.strictEqual(error.code, 'ENOBUFS');
    assert.match(error.message, /^0000:b0:00.0: port changes were lost: /);
    control('port 0 down');
    const [change] = await once(device, 'port');
    assert.strictEqual(change.state, 'down');
  }
  await control('heal 0');
});

test('a device closed because port changes were lost', async (t) => {
  const device = await use(t, 0);
  const closed = new Promise((resolve) => {
    device.once('portError', () => resolve(device.close()));
  });
  await overrunPortQueue(0);
  await closed;
});

test('a port that is not heard of any more is told, and the device serves', async (t) => {
  const device = await use(t, 0);
  await control('fail 0 301 3'); // CREATE_EQ, once
  overrunPortQueue(0);
  const [error] = await once(device, 'portError');
  assert.strictEqual(error.code, 'EREMOTEIO');
  assert.match(error.message, /^0000:b0:00.0: port changes are not heard of: /);
  assert.strictEqual(device.health().fault, null);
  await control('heal 0');
});

test('a portError that nobody hears is a warning', async (t) => {
  const device = await use(t, 0);
  overrunPortQueue(0);
  const [warning] = await once(process, 'warning');
  assert.deepStrictEqual([warning.name, warning.code], ['Warning', 'ENOBUFS']);
  assert.match(warning.message, /^0000:b0:00.0: port changes were lost: /);
  assert.strictEqual(device.health().fault, null);
  await control('heal 0');
});

async function opensWith(bytes) {
  await control(`memlock 0 ${bytes}`);
  try {
    return await mlx5vfio.open(pci(0));
  } catch {
    return null;
  }
}

// With the least memory that a device can be opened with there is none for an event queue.
test('a port that was never heard of is told once the device is open', async (t) => {
  const page = 4096;
  let [few, enough] = [0, 2 ** 16];
  while (enough - few > 1) {
    const middle = (few + enough) >> 1;
    const device = await opensWith(middle * page);
    device?.on('portError', () => {});
    await device?.close();
    [few, enough] = device ? [few, middle] : [middle, enough];
  }
  const device = await opensWith(enough * page);
  t.after(() => device.close());
  const [error] = await once(device, 'portError');
  assert.strictEqual(error.code, 'ENOMEM');
  assert.strictEqual(device.health().fault, null);
  await control('heal 0');
});

test('a port goes down and comes up, in order', async (t) => {
  const device = await use(t, 0);
  const changes = [];
  const both = new Promise((resolve) => {
    device.on('port', (change) => changes.push(change) === 2 && resolve());
  });
  await control('port 0 down');
  await control('port 0 up');
  await both;
  assert.deepStrictEqual(changes, [
    { port: 1, state: 'down', subType: 1 },
    { port: 1, state: 'up', subType: 4 },
  ]);
  assert.strictEqual(device.stats().events, 2);
});
