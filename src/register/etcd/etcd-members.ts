/**
 * Each endpoint of an etcd, asked by a connection of its own whether it answers: a linearizable read, so that
 * a member which has lost the others says no. For who wants to know what is left when one of them goes.
 */
import { lookUpHost } from '../../platform/node/host-lookup.js';
import { KeptLookups } from '../../platform/node/kept-lookup.js';
import { PROBE_KEY } from '../keys.js';
import { loadMethods } from './definitions.js';
import { EtcdConnection } from './etcd-connection.js';
import type { EtcdLineOptions } from './etcd-line.js';
import { EtcdMessages } from './etcd-messages.js';

const ANSWER_MS = 2_000;

export interface RegisterMember {
  readonly endpoint: string;
  /** '' when it answers. */
  readonly why: string;
}

export function askMembers(options: EtcdLineOptions): Promise<readonly RegisterMember[]> {
  const methods = loadMethods();
  const messages = new EtcdMessages(options.cluster);
  const { tls, login } = options;
  const { lookup } = new KeptLookups(lookUpHost);
  return Promise.all(options.endpoints.map((endpoint) => new Promise<RegisterMember>((resolve) => {
    const end = (why: string): void => {
      clearTimeout(timer);
      connection.close();
      resolve({ endpoint, why });
    };
    const connection = new EtcdConnection({ endpoint, tls, login, lookup }, methods, messages, end);
    const timer = setTimeout(() => { end(`no answer for ${String(ANSWER_MS / 1000)} s`); }, ANSWER_MS);
    connection.open({ key: PROBE_KEY }, () => { end(''); });
  })));
}
