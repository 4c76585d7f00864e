/** `register: etcd`: a client of it on the real clock. */
import type { EventLog } from '../../platform/ports.js';
import { DEFAULT_CLIENT_OPTIONS } from '../client/register-client.js';
import type { RegisterClientOptions } from '../client/register-client.js';
import type { Register } from '../port.js';
import { RunningClient } from '../running/running-client.js';
import { EtcdLine } from './etcd-line.js';
import type { EtcdLineOptions } from './etcd-line.js';

export function connectEtcdRegister(
  options: EtcdLineOptions,
  log: EventLog,
  client: RegisterClientOptions = DEFAULT_CLIENT_OPTIONS,
): Register {
  return new RunningClient(client, new EtcdLine(options, log), log);
}
