/** Dovecot behind: Twinpost delivers by LMTP (RFC 2033) into real mailboxes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { emptyMarks, readMarks } from '../../../src/load/marks.js';
import { runSend } from '../../../src/load/run.js';
import { pause, startCluster } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import { startDovecot } from '../dovecot.js';
import { answers } from '../support.js';

const COUNT = 100;
const BOUND_MS = 30_000;

function configuration(folder: string, port: number): string {
  return `protocols = lmtp
mail_location = maildir:${folder}/mail/%n
# Line ends are kept as they came.
mail_save_crlf = yes
first_valid_uid = 1
first_valid_gid = 1
auth_username_format = %n
passdb {
  driver = static
  args = nopassword=y
}
userdb {
  driver = static
  args = uid=mail gid=mail home=${folder}/mail/%n allow_all_users=yes
}
service lmtp {
  inet_listener lmtp {
    address = 127.0.0.1
    port = ${port}
  }
}
`;
}

interface Mailboxes {
  readonly port: number;
  /** Files of the mailbox of `user`. */
  mailbox(user: string): string[];
  log(): string;
  stop(): Promise<void>;
}

async function startMailboxes(): Promise<Mailboxes> {
  const [port = 0] = await freePorts(1);
  const dovecot = await startDovecot((folder) => {
    mkdirSync(join(folder, 'mail'));
    spawnSync('chown', ['mail:mail', join(folder, 'mail')]);
    return configuration(folder, port);
  }, () => answers(port));
  const mailbox = (user: string): string[] => {
    const inbox = join(dovecot.folder, 'mail', user, 'new');
    return existsSync(inbox) ? readdirSync(inbox).map((name) => join(inbox, name)) : [];
  };
  return { port, mailbox, log: dovecot.log, stop: dovecot.stop };
}

test('everything that Twinpost delivers to Dovecot by LMTP stands in the mailbox once, unaltered', async () => {
  const dovecot = await startMailboxes();
  try {
    const cluster = await startCluster({ routes: [{ domain: 'boxes.example', via: `lmtp://127.0.0.1:${dovecot.port}`, concurrency: 4 }] });
    try {
      const sent = await runSend({ host: '127.0.0.1', port: cluster.smtpPort, count: COUNT, connections: 4, domains: ['boxes.example'], localPart: 'box' });
      assert.equal(sent.accepted, COUNT);
      const until = performance.now() + BOUND_MS;
      while (dovecot.mailbox('box').length < COUNT && performance.now() < until) await pause(50);
      const ids = new Set<number>();
      for (const file of dovecot.mailbox('box')) {
        const marks = emptyMarks();
        assert.equal(readMarks(readFileSync(file), marks), true, file);
        assert.equal(marks.actualHash, marks.hash, `message ${marks.id} was altered`);
        ids.add(marks.id);
      }
      assert.equal(ids.size, COUNT, `${cluster.gateway.logTail()}\n${dovecot.log()}`);
      assert.equal(dovecot.mailbox('box').length, COUNT);
    } finally {
      await cluster.stop();
    }
  } finally {
    await dovecot.stop();
  }
});
