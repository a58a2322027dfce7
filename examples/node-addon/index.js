// SPDX-License-Identifier: BSD-2-Clause
'use strict';

const { EventEmitter } = require('node:events');
const native = require('./build/Release/mlx5vfio.node');

const DEFAULT_INTERVAL = 500;

let notify; // all that the native side says after the device is open

class Device extends EventEmitter {
  #handle;
  #closing; // { promise, resolve, reject } from the first close() on

  constructor(pciName, handle) {
    super();
    this.pciName = pciName;
    this.#handle = handle;
  }

  get guarded() {
    return native.guarded(this.#handle);
  }

  health() {
    return native.health(this.#handle);
  }

  stats() {
    return native.stats(this.#handle);
  }

  ref() {
    native.ref(this.#handle);
    return this;
  }

  unref() {
    native.unref(this.#handle);
    return this;
  }

  async close() {
    if (!this.#closing) {
      native.close(this.#handle); // throws when there is no thread for it: it can be tried again
      this.#closing = withResolvers();
    }
    return this.#closing.promise;
  }

  #hear(event, value) {
    switch (event) {
      case 'health':
        // A device must not die unheard.
        if (!this.emit('health', value) && value.fault) {
          this.emit('error', deathOf(this, value));
        }
        break;
      case 'error':
        value.message = `${this.pciName}: ${value.message}`;
        this.emit('error', value);
        break;
      case 'close':
        // Before the event, whose listeners may throw.
        if (value) {
          this.#closing.reject(value);
        } else {
          this.#closing.resolve();
        }
        this.emit('close');
        break;
      case 'removal':
        if (!this.emit('removal')) {
          process.emitWarning(`${this.pciName}: the kernel asks for the device back`);
        }
        break;
      case 'port':
        this.emit('port', value);
        break;
      case 'portError':
        // The device serves: a program that does not care for ports must not end.
        value.message = `${this.pciName}: ${value.message}`;
        if (!this.emit('portError', value)) {
          process.emitWarning(value.message, { code: value.code });
        }
        break;
      default:
        this.emit(event);
    }
  }

  static {
    notify = (device, event, value) => device.#hear(event, value);
  }
}

function withResolvers() {
  const all = {};
  all.promise = new Promise((resolve, reject) => Object.assign(all, { resolve, reject }));
  return all;
}

function deathOf(device, health) {
  const error = new Error(`${device.pciName}: ${health.text}, syndrome ${health.syndText}`);
  return Object.assign(error, { code: 'EIO', health });
}

function checkInterval(interval) {
  const valid = Number.isInteger(interval) &&
    (interval === 0 || (interval >= 10 && interval <= 3600000));
  if (!valid) {
    throw new RangeError('interval must be 0, or 10 to 3600000 milliseconds');
  }
}

async function open(pciName, { interval = DEFAULT_INTERVAL } = {}) {
  if (typeof pciName !== 'string') {
    throw new TypeError('pciName must be a string');
  }
  checkInterval(interval);
  return new Promise((resolve, reject) => {
    let device;
    native.open(pciName, interval, (event, value) => {
      if (event === 'open') {
        device = new Device(pciName, value);
        resolve(device);
      } else if (event === 'fail') {
        value.message = `cannot open ${pciName}: ${value.message}`;
        reject(value);
      } else {
        notify(device, event, value);
      }
    });
  });
}

module.exports = {
  open,
  Device,
  versions: Object.freeze({ mlx5vfio: native.version, uv: native.uvVersion }),
};
