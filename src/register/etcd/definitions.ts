/**
 * The part of etcd's own definitions that is used here: api/mvccpb/kv.proto and api/etcdserverpb/rpc.proto
 * of etcd 3.4, unchanged in later ones, field by field with their numbers. Other fields of an answer
 * are passed over, as protobuf has it. Here as a table, so that no file besides the compiled ones
 * has to be found at run time.
 */
import { fromJSON } from '@grpc/proto-loader';
import type { ServiceDefinition } from '@grpc/proto-loader';

type Field = readonly [id: number, type: string];
type Message = Readonly<Record<string, Field>>;

/** `*` in front of a type: repeated. */
const MESSAGES: Readonly<Record<string, Message>> = {
  KeyValue: {
    key: [1, 'bytes'],
    create_revision: [2, 'int64'],
    mod_revision: [3, 'int64'],
    version: [4, 'int64'],
    value: [5, 'bytes'],
    lease: [6, 'int64'],
  },
  /** type: 0 put, 1 delete. */
  Event: { type: [1, 'int32'], kv: [2, 'KeyValue'] },
  ResponseHeader: {
    cluster_id: [1, 'uint64'],
    member_id: [2, 'uint64'],
    revision: [3, 'int64'],
    raft_term: [4, 'uint64'],
  },
  RangeRequest: {
    key: [1, 'bytes'],
    range_end: [2, 'bytes'],
    limit: [3, 'int64'],
    revision: [4, 'int64'],
    serializable: [7, 'bool'],
  },
  RangeResponse: {
    header: [1, 'ResponseHeader'],
    kvs: [2, '*KeyValue'],
    more: [3, 'bool'],
    count: [4, 'int64'],
  },
  PutRequest: { key: [1, 'bytes'], value: [2, 'bytes'], lease: [3, 'int64'] },
  PutResponse: { header: [1, 'ResponseHeader'] },
  DeleteRangeRequest: { key: [1, 'bytes'], range_end: [2, 'bytes'] },
  DeleteRangeResponse: { header: [1, 'ResponseHeader'], deleted: [2, 'int64'] },
  RequestOp: {
    request_range: [1, 'RangeRequest'],
    request_put: [2, 'PutRequest'],
    request_delete_range: [3, 'DeleteRangeRequest'],
    request_txn: [4, 'TxnRequest'],
  },
  ResponseOp: {
    response_range: [1, 'RangeResponse'],
    response_put: [2, 'PutResponse'],
    response_delete_range: [3, 'DeleteRangeResponse'],
    response_txn: [4, 'TxnResponse'],
  },
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
    header: [1, 'ResponseHeader'],
    watch_id: [2, 'int64'],
    created: [3, 'bool'],
    canceled: [4, 'bool'],
    compact_revision: [5, 'int64'],
    cancel_reason: [6, 'string'],
    fragment: [7, 'bool'],
    events: [11, '*Event'],
  },
  LeaseGrantRequest: { TTL: [1, 'int64'], ID: [2, 'int64'] },
  LeaseGrantResponse: {
    header: [1, 'ResponseHeader'],
    ID: [2, 'int64'],
    TTL: [3, 'int64'],
    error: [4, 'string'],
  },
  LeaseRevokeRequest: { ID: [1, 'int64'] },
  LeaseRevokeResponse: { header: [1, 'ResponseHeader'] },
  LeaseKeepAliveRequest: { ID: [1, 'int64'] },
  LeaseKeepAliveResponse: { header: [1, 'ResponseHeader'], ID: [2, 'int64'], TTL: [3, 'int64'] },
  AuthenticateRequest: { name: [1, 'string'], password: [2, 'string'] },
  AuthenticateResponse: { header: [1, 'ResponseHeader'], token: [2, 'string'] },
};

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

export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly mod_revision: number;
  readonly lease: number;
}

export interface Header {
  readonly revision: number;
}

export interface RangeRequest {
  readonly key: Buffer;
  readonly range_end?: Buffer;
  readonly limit?: number;
  readonly revision?: number;
}

export interface RangeResponse {
  readonly header: Header | null;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
}

export interface Compare {
  readonly result: number;
  readonly target: number;
  readonly key: Buffer;
  readonly mod_revision?: number;
  readonly value?: Buffer;
}

export interface RequestOp {
  readonly request_range?: RangeRequest;
  readonly request_put?: { readonly key: Buffer; readonly value: Buffer; readonly lease: number; };
  readonly request_delete_range?: { readonly key: Buffer; };
  readonly request_txn?: TxnRequest;
}

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

export interface ResponseOp {
  readonly response_range: RangeResponse | null;
  readonly response_txn: TxnResponse | null;
}

export interface TxnResponse {
  readonly header: Header | null;
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}

export interface WatchRequest {
  readonly create_request: {
    readonly key: Buffer;
    readonly range_end: Buffer;
    readonly start_revision: number;
    readonly watch_id: number;
    readonly fragment: boolean;
  };
}

export interface WatchResponse {
  readonly created: boolean;
  readonly canceled: boolean;
  readonly compact_revision: number;
  readonly cancel_reason: string;
  readonly events: readonly { readonly type: number; readonly kv: KeyValue | null; }[];
}

export interface LeaseRequest {
  readonly ID: number;
  readonly TTL?: number;
}

export interface LeaseResponse {
  readonly ID: number;
  /** Seconds; 0: there is no such lease. */
  readonly TTL: number;
}

export interface AuthenticateRequest {
  readonly name: string;
  readonly password: string;
}

export interface AuthenticateResponse {
  readonly token: string;
}

/** One call: where it goes, and its bytes. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

export interface EtcdMethods {
  readonly range: Method<RangeRequest, RangeResponse>;
  readonly txn: Method<TxnRequest, TxnResponse>;
  readonly watch: Method<WatchRequest, WatchResponse>;
  readonly leaseGrant: Method<LeaseRequest, LeaseResponse>;
  readonly leaseRevoke: Method<LeaseRequest, object>;
  readonly leaseKeepAlive: Method<LeaseRequest, LeaseResponse>;
  readonly authenticate: Method<AuthenticateRequest, AuthenticateResponse>;
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
