/**
 * The part of etcd's own definitions that is used here: api/mvccpb/kv.proto and api/etcdserverpb/rpc.proto
 * of etcd 3.4, unchanged in later ones, field by field with their numbers. Other fields of an answer
 * are passed over, as protobuf has it. Here as a table, from which the types follow, so that no file besides
 * the compiled ones has to be found at run time.
 */
import { fromJSON } from '@grpc/proto-loader';
import type { ServiceDefinition } from '@grpc/proto-loader';

/** `*` in front of a type: repeated. */
const MESSAGES = {
  KeyValue: { key: [1, 'bytes'], mod_revision: [3, 'int64'], value: [5, 'bytes'], lease: [6, 'int64'] },
  /** type: 0 put, 1 delete. */
  Event: { type: [1, 'int32'], kv: [2, 'KeyValue'] },
  ResponseHeader: { revision: [3, 'int64'] },
  RangeRequest: {
    key: [1, 'bytes'], range_end: [2, 'bytes'], limit: [3, 'int64'], revision: [4, 'int64'],
  },
  RangeResponse: { header: [1, 'ResponseHeader'], kvs: [2, '*KeyValue'], more: [3, 'bool'] },
  PutRequest: { key: [1, 'bytes'], value: [2, 'bytes'], lease: [3, 'int64'] },
  DeleteRangeRequest: { key: [1, 'bytes'] },
  RequestOp: {
    request_range: [1, 'RangeRequest'],
    request_put: [2, 'PutRequest'],
    request_delete_range: [3, 'DeleteRangeRequest'],
    request_txn: [4, 'TxnRequest'],
  },
  ResponseOp: { response_range: [1, 'RangeResponse'], response_txn: [4, 'TxnResponse'] },
  /** result: 0 equal. target: 2 the revision of the last change, 3 the value; one of both is compared. */
  Compare: {
    result: [1, 'int32'],
    target: [2, 'int32'],
    key: [3, 'bytes'],
    mod_revision: [6, 'int64'],
    value: [7, 'bytes'],
  },
  TxnRequest: { compare: [1, '*Compare'], success: [2, '*RequestOp'], failure: [3, '*RequestOp'] },
  TxnResponse: { header: [1, 'ResponseHeader'], succeeded: [2, 'bool'], responses: [3, '*ResponseOp'] },
  WatchRequest: { create_request: [1, 'WatchCreateRequest'] },
  WatchCreateRequest: {
    key: [1, 'bytes'],
    range_end: [2, 'bytes'],
    start_revision: [3, 'int64'],
    watch_id: [7, 'int64'],
    fragment: [8, 'bool'],
  },
  WatchResponse: {
    created: [3, 'bool'],
    canceled: [4, 'bool'],
    compact_revision: [5, 'int64'],
    cancel_reason: [6, 'string'],
    events: [11, '*Event'],
  },
  /** TTL in seconds. */
  LeaseGrantRequest: { TTL: [1, 'int64'], ID: [2, 'int64'] },
  LeaseGrantResponse: { ID: [2, 'int64'], TTL: [3, 'int64'] },
  LeaseRevokeRequest: { ID: [1, 'int64'] },
  LeaseRevokeResponse: {},
  LeaseKeepAliveRequest: { ID: [1, 'int64'] },
  /** TTL 0: there is no such lease. */
  LeaseKeepAliveResponse: { ID: [2, 'int64'], TTL: [3, 'int64'] },
  AuthenticateRequest: { name: [1, 'string'], password: [2, 'string'] },
  AuthenticateResponse: { token: [2, 'string'] },
} as const satisfies Readonly<Record<string, Readonly<Record<string, readonly [id: number, type: string]>>>>;

const SERVICES = {
  KV: { Range: ['RangeRequest', 'RangeResponse'], Txn: ['TxnRequest', 'TxnResponse'] },
  Watch: { Watch: ['WatchRequest', 'WatchResponse'] },
  Lease: {
    LeaseGrant: ['LeaseGrantRequest', 'LeaseGrantResponse'],
    LeaseRevoke: ['LeaseRevokeRequest', 'LeaseRevokeResponse'],
    LeaseKeepAlive: ['LeaseKeepAliveRequest', 'LeaseKeepAliveResponse'],
  },
  Auth: { Authenticate: ['AuthenticateRequest', 'AuthenticateResponse'] },
} as const;

type Messages = typeof MESSAGES;
interface Scalars {
  readonly bytes: Buffer;
  readonly int32: number;
  readonly int64: number;
  readonly bool: boolean;
  readonly string: string;
}
type TypeOf<Message extends keyof Messages, Field extends keyof Messages[Message]> =
  Messages[Message][Field] extends readonly [number, infer Type] ? Type : never;

/** What is sent: a field that is left out has its default. */
export type Sent<Message extends keyof Messages> =
  { readonly [Field in keyof Messages[Message]]?: SentAs<TypeOf<Message, Field>> };
type SentAs<Type> =
  Type extends keyof Scalars ? Scalars[Type]
  : Type extends `*${infer Item}` ? readonly SentAs<Item>[]
  : Type extends keyof Messages ? Sent<Type> : never;

/** What comes: every field is there, a message as null where there is none. */
export type Received<Message extends keyof Messages> =
  { readonly [Field in keyof Messages[Message]]: ReceivedAs<TypeOf<Message, Field>> };
type ReceivedAs<Type> =
  Type extends keyof Scalars ? Scalars[Type]
  : Type extends `*${infer Item}` ? readonly NonNullable<ReceivedAs<Item>>[]
  : Type extends keyof Messages ? Received<Type> | null : never;

/** One call: where it goes, and its bytes. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}
type MethodOf<Request extends keyof Messages, Response extends keyof Messages> =
  Method<Sent<Request>, Received<Response>>;

export interface EtcdMethods {
  readonly range: MethodOf<'RangeRequest', 'RangeResponse'>;
  readonly txn: MethodOf<'TxnRequest', 'TxnResponse'>;
  readonly watch: MethodOf<'WatchRequest', 'WatchResponse'>;
  readonly leaseGrant: MethodOf<'LeaseGrantRequest', 'LeaseGrantResponse'>;
  readonly leaseRevoke: MethodOf<'LeaseRevokeRequest', 'LeaseRevokeResponse'>;
  readonly leaseKeepAlive: MethodOf<'LeaseKeepAliveRequest', 'LeaseKeepAliveResponse'>;
  readonly authenticate: MethodOf<'AuthenticateRequest', 'AuthenticateResponse'>;
}

export function loadMethods(): EtcdMethods {
  const nested: Record<string, object> = {};
  for (const [name, fields] of Object.entries(MESSAGES)) {
    nested[name] = {
      fields: Object.fromEntries(
        Object.entries(fields).map(([field, [id, type]]) => [field, fieldOf(id, type)]),
      ),
    };
  }
  for (const [name, methods] of Object.entries(SERVICES)) {
    nested[name] = {
      methods: Object.fromEntries(
        Object.entries(methods).map((
          [method, [requestType, responseType]],
        ) => [method, { requestType, responseType }]),
      ),
    };
  }
  const root = { nested: { etcdserverpb: { nested } } } as Parameters<typeof fromJSON>[0];
  // Revisions and our own lease ids are below 2^53; ids of members, which may not be, are not used.
  const definitions = fromJSON(root, { longs: Number, defaults: true, arrays: true });
  const service = (name: string): ServiceDefinition =>
    definitions[`etcdserverpb.${name}`] as ServiceDefinition;
  const method = <Request, Response>(of: string, name: string): Method<Request, Response> =>
    service(of)[name] as unknown as Method<Request, Response>;
  return {
    range: method('KV', 'Range'),
    txn: method('KV', 'Txn'),
    watch: method('Watch', 'Watch'),
    leaseGrant: method('Lease', 'LeaseGrant'),
    leaseRevoke: method('Lease', 'LeaseRevoke'),
    leaseKeepAlive: method('Lease', 'LeaseKeepAlive'),
    authenticate: method('Auth', 'Authenticate'),
  };
}

function fieldOf(id: number, type: string): object {
  return type.startsWith('*') ? { id, type: type.slice(1), rule: 'repeated' } : { id, type };
}
