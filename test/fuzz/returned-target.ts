/**
 * Return addresses and reports in somebody else's hands: addresses that were made here, changed; reports of fields in
 * any order, changed. What must hold:
 *
 *   an address that was made here     says what it was made of, in any case
 *   one that was changed              is none, unless its case alone was
 *   whatever is read of a report      bounded, one line, without a control character
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { Prng } from '../../src/base/prng.js';
import { ReturnAddresses } from '../../src/base/return-addresses.js';
import { readDeliveryStatus, readFeedback, readReturnPath } from '../../src/gateway/returned/report-content.js';
import { tally } from './field.js';
import { changed } from './inputs.js';

const SENDERS = ['alice@example.org', 'A.l+ice=x@Example.ORG', `${'a'.repeat(24)}@example.org`, "o'neill@e.example"] as const;
const FIELDS = ['Final-Recipient: rfc822; bob@b', 'Action: failed', 'Status: 5.1.1', 'Diagnostic-Code: smtp; 550 no', ' folded', '', '\t', 'Feedback-Type: abuse',
  'Original-Mail-From: <a@b>', 'Return-Path: <b+1@c>', 'Source-IP: ::1', ':', 'X:', 'Remote-MTA: dns; x'] as const;
const DAY_MS = 86_400_000;

export function returnedInput(random: Prng): void {
  const ours = new ReturnAddresses(
    { route: 'r', domain: 'b.example', prefix: random.pick(['b', 'news2']), daysValid: 10, leadsBack: random.below(2) === 0 },
    [Buffer.from('fuzz')], (key, text) => createHmac('sha256', key).update(text).digest(), () => random.below(30_000) * DAY_MS,
  );
  const sender = random.pick(SENDERS);
  const id = random.below(2 ** 31) * 1000;
  const written = ours.written(id, 'bob@b', sender);
  if (written !== sender) addressHolds(ours, written.slice(0, written.lastIndexOf('@')), id, sender, random);
  const text = Array.from({ length: random.below(30) }, () => random.pick(FIELDS)).join(random.pick(['\r\n', '\n', '\r']));
  const report = Buffer.from(random.below(3) === 0 ? text : changed(Buffer.from(text), random)).toString('utf8');
  const statuses = readDeliveryStatus(report);
  const feedback = readFeedback(report);
  assert.ok(statuses.length <= 50);
  for (const value of [...statuses.flatMap((each) => Object.values(each)), ...Object.values(feedback ?? {}), readReturnPath(report)]) {
    assert.ok(value.length <= 500 && !/\p{C}/u.test(value.replace(/\p{Surrogate}/u, '')), JSON.stringify(value));
  }
  if (statuses.length > 0) tally('statuses read');
  if (feedback !== undefined) tally('feedback read');
}

function addressHolds(ours: ReturnAddresses, local: string, id: number, sender: string, random: Prng): void {
  const token = ours.read(random.below(2) === 0 ? local.toUpperCase() : local);
  assert.equal(token?.messageId, id);
  assert.ok(token.isOf('BOB@b'));
  assert.equal(token.sender.toLowerCase(), ours.options.leadsBack ? sender.toLowerCase() : '');
  const other = Buffer.from(changed(Buffer.from(local, 'latin1'), random)).toString('latin1');
  if (other.toLowerCase() === local.toLowerCase()) return;
  assert.equal(ours.read(other), undefined, other);
  tally('forgeries refused');
}
