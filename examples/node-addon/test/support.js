// SPDX-License-Identifier: BSD-2-Clause
// Everything here runs on simulated devices: mlx5vfio-sim must be on the PATH.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const net = require('node:net');
const path = require('node:path');

// A process of its own is what some devices need: without what the present simulator has set.
const OUTSIDE = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(MLX5VFIO_SIM_|LD_PRELOAD$)/.test(name)));

const pci = (n) => `0000:${(0xb0 + n).toString(16)}:00.0`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Puts a test file into a simulator of its own, when it is not in one.
function simulate(file) {
  if (process.env.MLX5VFIO_SIM_SOCKET) {
    return;
  }
  const { status, error } = spawnSync('mlx5vfio-sim',
    ['--devices', '8', '--', process.execPath, '--expose-gc', file], { stdio: 'inherit' });
  if (error) {
    console.error(`mlx5vfio-sim: ${error.message}`);
  }
  process.exit(status ?? 1);
}

// One line of the simulator's control language.
function control(line) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(process.env.MLX5VFIO_SIM_SOCKET, () => socket.write(`${line}\n`));
    socket.setEncoding('utf8');
    socket.on('error', reject);
    socket.once('data', (answer) => {
      socket.end();
      answer.startsWith('ok') ? resolve(answer) : reject(new Error(`${line}: ${answer}`));
    });
  });
}

// A device for one test, closed at its end whatever becomes of it: an open one keeps the process.
async function use(t, n, options = { interval: 20 }) {
  const device = await require('..').open(pci(n), options);
  t.after(() => device.close());
  return device;
}

// Runs fixture.js in a simulator of its own to its end.
function run(mode, { faults } = {}) {
  const options = faults ? ['--faults', path.join(__dirname, faults)] : [];
  const child = spawn('mlx5vfio-sim',
    ['--devices', '3', ...options, '--', process.execPath, path.join(__dirname, 'fixture.js'), mode],
    { env: OUTSIDE, stdio: ['ignore', 'pipe', 'pipe'] });
  const result = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => { result[stream] += text; });
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ ...result, code, signal }));
  });
}

// work(0) … work(rounds - 1), two at a time, so that starting a program does not cost its time.
async function rounds(count, work) {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      await work(next++);
    }
  };
  await Promise.all([worker(), worker()]);
}

const ROUNDS = Number(process.env.ROUNDS ?? 50);

module.exports = { pci, sleep, simulate, control, use, run, rounds, ROUNDS };
