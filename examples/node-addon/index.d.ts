// SPDX-License-Identifier: BSD-2-Clause
import { EventEmitter } from 'events';

export type Fault =
  | 'PCI_OFFLINE'    // registers read all ones: unplugged, powered off or a dead link
  | 'NIC_DISABLED'   // the NIC interface is in state disabled
  | 'NIC_RESET'      // the NIC interface is in state software reset
  | 'FW_FATAL'       // firmware reports a syndrome and asks for recovery
  | 'STALLED'        // the health counter has not moved for two seconds
  | 'FOREIGN_RESET'  // somebody else reset the function
  | 'PCI_ERROR'      // a PCI error was signalled and the device died of it
  | 'UNKNOWN';       // one that is newer than this package

export interface Health {
  /** null while the device lives. Every fault is final: close the device and open it again. */
  fault: Fault | null;
  /** The fault in words. */
  text: string;
  /** Alive, but something is reported. */
  warning: boolean;
  synd: number;
  syndText: string;
  extSynd: number;
  firmware: string;
  counter: number;
  unmovedMs: number;
  assertVar: number[];
  assertExitPtr: number;
  assertCallra: number;
  hwId: number;
  iriscIndex: number;
  recoveryRequest: boolean;
}

export interface Stats {
  wakeups: number;
  ticks: number;
  calls: number;
  errors: number;
  retries: number;
  reports: number;
  samples: number;
  deferred: number;
  events: number;
}

export interface OpenOptions {
  /** Milliseconds between looks at the device's health: 10 to 3600000, 0 for none; 500. */
  interval?: number;
}

export interface PortChange {
  /** The port's number, from 1. */
  port: number;
  state: 'up' | 'down' | 'changed';
  /** What changed, as the programmer's reference manual numbers it. */
  subType: number;
}

export interface DeviceEvents {
  /** The state changed: a warning, its end, or a fault, after which nothing comes but 'close'. */
  health: [health: Health];
  /** Events cannot be handled for now (retries go on), or a fault that no 'health' listener heard. */
  error: [error: NodeJS.ErrnoException & { health?: Health }];
  /** The kernel asks for the device back: close it. */
  removal: [];
  /** A port of the device changed its state. */
  port: [change: PortChange];
  /**
   * Changes of ports were lost (code ENOBUFS: more came than there was room for while the program was
   * busy; 'port' goes on), or are not heard of (any other code: there is no 'port' any more). The
   * device serves. When nobody listens it is a warning of the process, not an exception.
   */
  portError: [error: NodeJS.ErrnoException];
  /** The device is closed. */
  close: [];
}

export class Device extends EventEmitter {
  private constructor();

  readonly pciName: string;

  /** False when libmlx5 would abort the process if the device died. */
  readonly guarded: boolean;

  /** Reads the registers now. These and guarded throw { code: 'EBADF' } once close() was called. */
  health(): Health;
  stats(): Stats;

  /**
   * Whether the device keeps the process alive, which it does at first. A dead device does not: close
   * it in 'health', or end the process with a status of your own.
   */
  ref(): this;
  unref(): this;

  /**
   * Closes the device on a thread of its own: milliseconds, but minutes for a dead one. Keeps the
   * process alive until then, unless unref() is called after it.
   */
  close(): Promise<void>;

  on<E extends keyof DeviceEvents>(event: E, listener: (...args: DeviceEvents[E]) => void): this;
  once<E extends keyof DeviceEvents>(event: E, listener: (...args: DeviceEvents[E]) => void): this;
  off<E extends keyof DeviceEvents>(event: E, listener: (...args: DeviceEvents[E]) => void): this;
}

/**
 * Opens a device by its PCI name ('0000:b0:00.0') on a thread of its own. Rejects with a sentence that
 * says why it cannot, and the errno's name as its code. Listeners that are set before the next await
 * miss nothing.
 */
export function open(pciName: string, options?: OpenOptions): Promise<Device>;

export const versions: Readonly<{ mlx5vfio: string; uv: string }>;
