/** What errors of etcd and of grpc-js mean: what is surely not applied, and what may be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { status } from '@grpc/grpc-js';

import { adviceOn, judge } from '../../../../src/register/etcd/etcd-errors.js';

const verdict = (code: status, details: string): string => {
  const { refusal, isConnectionBad } = judge({ code, details });
  return `${refusal ?? 'unknown'}${isConnectionBad ? ', next endpoint' : ''}`;
};

test('what etcd refuses before it proposes it is refused; everything else is unknown', () => {
  assert.equal(verdict(status.NOT_FOUND, 'etcdserver: requested lease not found'), 'session');
  assert.equal(verdict(status.PERMISSION_DENIED, 'etcdserver: permission denied'), 'denied');
  assert.equal(verdict(status.INVALID_ARGUMENT, 'etcdserver: request is too large'), 'limit');
  assert.equal(verdict(status.INVALID_ARGUMENT, 'etcdserver: too many operations in txn request'), 'limit');
  assert.equal(verdict(status.RESOURCE_EXHAUSTED, 'etcdserver: mvcc: database space exceeded'), 'full');
  assert.equal(verdict(status.UNAUTHENTICATED, 'etcdserver: invalid auth token'), 'away, next endpoint');
  assert.equal(
    verdict(status.OUT_OF_RANGE, 'etcdserver: mvcc: required revision has been compacted'),
    'limit',
  );
  assert.equal(verdict(status.UNAVAILABLE, 'etcdserver: request timed out'), 'unknown, next endpoint');
  assert.equal(verdict(status.UNAVAILABLE, 'etcdserver: leader changed'), 'unknown, next endpoint');
  assert.equal(verdict(status.UNKNOWN, 'context deadline exceeded'), 'unknown, next endpoint');
  assert.equal(verdict(status.UNAVAILABLE, 'Connection dropped'), 'unknown, next endpoint');
  // grpc-js itself, about an answer: the change may well be applied.
  assert.equal(
    verdict(status.RESOURCE_EXHAUSTED, 'Received message larger than max (5 vs 4)'),
    'unknown, next endpoint',
  );
  assert.equal(verdict(status.INTERNAL, 'Response message parsing error'), 'unknown, next endpoint');
});

test('an operator reads what to do, without times that make each line new', () => {
  assert.equal(
    adviceOn('connect ECONNREFUSED 10.0.0.1:2379'),
    'connect ECONNREFUSED 10.0.0.1:2379: is etcd running there, and is this its client port?',
  );
  assert.match(adviceOn('etcdserver: no leader'), /most members of etcd have to run/);
  assert.match(
    adviceOn(
      'No connection established. Last error: Failed to connect (2026-11-22T16:31:47.403Z). Resolution note: ',
    ),
    /^No connection established\. Last error: Failed to connect: does etcd speak TLS there/,
  );
  assert.match(
    judge({ code: status.UNIMPLEMENTED, details: 'unknown service' }).text,
    /is this etcd 3\.4 or newer\?/,
  );
});
