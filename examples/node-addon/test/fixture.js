// SPDX-License-Identifier: BSD-2-Clause
// Programs that end in different ways with devices open; life.test.js runs them.
'use strict';

const path = require('node:path');
const { Worker } = require('node:worker_threads');
const mlx5vfio = require('..');
const { pci, sleep, control, ROUNDS } = require('./support');

const fast = { interval: 20 };
const opened = (n) => mlx5vfio.open(pci(n), fast);
const died = (device) => new Promise((resolve) => { device.once('health', resolve); });

const modes = {
  async unref() {
    for (const n of [0, 1]) {
      (await opened(n)).unref();
    }
  },
  async 'close-unreferenced'() {
    await (await opened(0)).unref().close();
    console.log('closed');
  },
  async exit() {
    await Promise.all([opened(0), opened(1)]);
    process.exit(3);
  },
  async 'exit-in-handler'() {
    (await opened(0)).on('health', () => process.exit(4));
  },
  async throw() {
    (await opened(0)).on('health', () => { throw new Error('thrown by a handler'); });
  },
  async reject() {
    (await opened(0)).on('health', async () => { throw new Error('rejected by a handler'); });
  },
  async unheard() {
    await opened(0);
  },
  // The program lives on, and so does the device.
  async caught() {
    const device = await opened(0);
    device.on('health', () => { throw new Error('thrown by a handler'); });
    for (let round = 0; round < ROUNDS; round++) {
      const caught = new Promise((resolve) => { process.once('uncaughtException', resolve); });
      await control(`syndrome 0 ${round % 2 ? 0 : 7}`);
      console.log((await caught).message);
    }
    await device.close();
  },
  async 'exit-while-opening'() {
    opened(0);
    await opened(1);
    await sleep(50);
    process.exit(5);
  },
  async 'exit-while-closing'() {
    const device = await opened(0);
    await died(device);
    await sleep(300);
    device.close();
    await sleep(50);
    process.exit(6);
  },
  // its own closing does not keep the process, when it is told so
  async 'unref-while-closing'() {
    const device = await opened(0);
    await died(device);
    await sleep(300);
    device.close();
    device.unref();
  },
  async 'exit-with-workers'() {
    const program = `require(${JSON.stringify(path.join(__dirname, '..'))})
      .open(require('worker_threads').workerData)
      .then(() => require('worker_threads').parentPort.postMessage('open'))`;
    await Promise.all([0, 1].map((n) => new Promise((resolve) => {
      new Worker(program, { eval: true, workerData: pci(n) }).once('message', resolve);
    })));
    process.exit(7);
  },
};

modes[process.argv[2]]();
