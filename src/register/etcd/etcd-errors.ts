/**
 * The one place that decides what an error of etcd, or on the way to it, means: for the call, for the
 * connection, and for the operator who reads of it.
 *
 *   refused   etcd itself says that it did not do it: its own text with a code that it gives before it
 *   proposes a change unknown   everything else: the connection broke, it was too slow, it lost its leader;
 *   may still be applied
 *
 *   the connection goes on where the call was at fault; else the next endpoint is tried
 */
import { status } from '@grpc/grpc-js';
import type { RefusalReason } from '../port.js';

/** What grpc-js gives to a callback. */
export interface CallError {
  readonly code: status;
  readonly details: string;
}

export interface Verdict {
  /** Undefined: the outcome is unknown. */
  readonly refusal: RefusalReason | undefined;
  /** The endpoint can't do its work now. */
  readonly isConnectionBad: boolean;
  /** What went wrong and what to do, without the endpoint. */
  readonly text: string;
}

/** Errors that etcd answers before anything is proposed to the cluster, or in place of applying it. */
const NOT_APPLIED: readonly status[] = [
  status.INVALID_ARGUMENT,
  status.PERMISSION_DENIED,
  status.UNAUTHENTICATED,
  status.NOT_FOUND,
  status.RESOURCE_EXHAUSTED,
  status.FAILED_PRECONDITION,
  status.OUT_OF_RANGE,
];

export function judge({ code, details }: CallError): Verdict {
  // grpc-js makes errors with the same codes itself, about answers that it can't read:
  // those say nothing of the change.
  const text = code === status.UNIMPLEMENTED ? `${details}: is this etcd 3.4 or newer?` : adviceOn(details);
  const isEtcds = /^(etcdserver|mvcc|auth):/.test(details);
  if (!isEtcds || !NOT_APPLIED.includes(code)) {
    return { refusal: undefined, isConnectionBad: true, text };
  }
  if (/requested lease not found/.test(details)) return { refusal: 'session', isConnectionBad: false, text };
  if (code === status.PERMISSION_DENIED) return { refusal: 'denied', isConnectionBad: false, text };
  // A token that has run out, or rights that changed since: signing in again mends it.
  if (code === status.UNAUTHENTICATED || /auth/.test(details)) {
    return { refusal: 'away', isConnectionBad: true, text };
  }
  if (code === status.RESOURCE_EXHAUSTED) return { refusal: 'full', isConnectionBad: false, text };
  return { refusal: 'limit', isConnectionBad: false, text };
}

const ADVICE: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/ECONNREFUSED/, 'is etcd running there, and is this its client port?'],
  [
    /no answer on its address|has no address|Name resolution failed/,
    'is the name right, and does DNS answer?',
  ],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, 'is the network between this machine and etcd up?'],
  [
    /self.signed|unable to (get|verify)|CERT_|certificate (has exp|is not y)|altnames/i,
    "does `ca` hold the authority of etcd's certificate, and does that bear the name of the endpoint?",
  ],
  [
    /bad certificate|certificate required|unknown ca|alert/i,
    'does etcd trust the client certificate given by `cert` and `key`?',
  ],
  [
    /wrong version number|EPROTO|ECONNRESET|closed in the TLS handshake|Failed to connect$/i,
    'does etcd speak TLS there? then write https:// instead of http://, or the other way round',
  ],
  [/authentication failed|invalid user|password/i, 'are `user` and `password` those of `etcdctl user list`?'],
  [/authentication is not enabled/i, 'leave out `user`, or run `etcdctl auth enable`'],
  [
    /user name is empty/i,
    'etcd asks for a user: give `user` and `password`, or a client certificate that names one',
  ],
  [
    /permission denied/i,
    "give the user's role this prefix: etcdctl role grant-permission ROLE readwrite --prefix=true PREFIX",
  ],
  [/database space exceeded/i, 'etcd is full: compact and defragment it, then `etcdctl alarm disarm`'],
  [/too many operations/i, 'etcd was started with a lower --max-txn-ops: set `operations` to it'],
  [
    /request is too large/i,
    'etcd was started with a lower --max-request-bytes: give it back its default of 1.5 MiB',
  ],
  [
    /no leader|leader changed|request timed out|not ready/i,
    'most members of etcd have to run and reach each other: etcdctl endpoint status --cluster',
  ],
];

/** What went wrong, without the times and empty notes of grpc-js, and what to do. */
export function adviceOn(details: string): string {
  const plain = details.replace(/ \(\d{4}-[\d-]+T[\d:.]+Z\)/g, '').replace(/\.? ?Resolution note: *$/, '');
  const found = ADVICE.find(([pattern]) => pattern.test(plain))?.[1];
  return found === undefined ? plain : `${plain}: ${found}`;
}
