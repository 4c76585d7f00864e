/** Haraka behind, as a smarthost: it takes mail by TLS from a user with a password, and hands it on. */
import { test } from 'node:test';

import { takesAllOfItsUser } from '../behind-story.js';
import { startHaraka } from './haraka.js';

/** Says of each message by whom, and how, it came. */
const TELLS = `exports.hook_data_post = (next, connection) => {
  connection.loginfo(exports.name + ' took by ' + connection.notes.auth_user + ', tls ' + connection.tls.enabled);
  next();
};`;

for (const isTlsFirst of [false, true]) {
  const way = isTlsFirst ? 'with TLS first' : 'within STARTTLS';
  test(`Haraka takes mail from a user ${way}, and none with a wrong password`, { timeout: 120_000 }, () =>
    takesAllOfItsUser({
      start: async ({ nextHopPort, certificate, user, password }) => {
        const haraka = await startHaraka({ nextHopPort, queue: 'smtp_forward', certificate, user: { name: user, password }, plugin: TELLS });
        return { ...haraka, port: isTlsFirst ? haraka.tlsFirstPort : haraka.port };
      },
      isTlsFirst, taken: (user) => new RegExp(`took by ${user}, tls true`),
    }));
}
