/**
 * Admin HTTP of a store: probes, what it is and holds, its group, and its file read again.
 * Addresses, shapes and roles: admin-api/routes.ts; who may ask: platform/node/admin-guard.ts.
 */
import type { GroupAnswer, MemberAnswer } from '../../admin-api/pages.js';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { probeRoutes, storeRoutes as routes } from '../../admin-api/routes.js';
import type {
  StorePartitionAnswer, StorePartitionPageAnswer, StoreStatusAnswer,
} from '../../admin-api/store-answers.js';
import { logAnswerOf } from '../../observability/log-losses.js';
import { reloaded } from '../../platform/node/admin-reload.js';
import { listenAs, serve } from '../../platform/node/admin-server.js';
import type { AdminOptions, RunningAdmin } from '../../platform/node/admin-server.js';
import { serveDocument } from '../../platform/node/openapi-files.js';
import { reachableAddress } from '../../platform/node/own-host.js';
import type { EventLog } from '../../platform/ports.js';
import type { ReloadControl } from '../../platform/reloads.js';
import { digestText } from '../../protocol/digest.js';
import { ownerOf } from '../../protocol/partition-record.js';
import type { MirroredPartition } from '../core/mirrored-partition.js';
import type { Store } from '../core/store.js';
import { addExport } from './export-page.js';
import type { RunningStore } from './running-store.js';
import { storeMetrics } from './store-metrics.js';

export interface AdminHttpOptions extends AdminOptions {
  /** Host label of the store. */
  readonly label: string;
  readonly version: string;
  readonly insecure: boolean;
  gateways(): readonly { readonly id: string; readonly admin?: string | undefined }[];
}

export interface AdminHttpPorts {
  readonly log: EventLog;
  /** For `config reload` and `diff`. */
  readonly reloads?: ReloadControl;
}

export async function startAdminHttp(
  options: AdminHttpOptions, running: RunningStore, { log, reloads }: AdminHttpPorts,
): Promise<RunningAdmin> {
  const registry = storeMetrics(running);
  return listenAs(options, {
    probes: probeRoutes, api: routes, members: () => group(options, running).members,
    addProbes: (app) => { addProbes(app, running, registry); },
    addApi: (app) => {
      serve(app, routes.status, () => status(options, running));
      serve(app, routes.partitions, ({ query: { cursor, limit } }) =>
        partitionPage(running, Number(cursor) || 0, limit));
      addExport(app, running, log);
      serveDocument(app, routes.document, 'store');
      serve(app, routes.group, () => group(options, running));
      if (reloads !== undefined) addReload(app, reloads, running);
    },
  }, log);
}

function addProbes(app: FastifyInstance, running: RunningStore, registry: Registry): void {
  serve(app, probeRoutes.healthz, () => ({ ok: true }));
  serve(app, probeRoutes.readyz, async (_request, reply) => {
    const ready = isReady(running);
    return await reply.code(ready ? 200 : 503).send({ ready });
  });
  serve(app, probeRoutes.metrics, async (_request, reply) =>
    await reply.type(registry.contentType).send(await registry.metrics()));
}

function addReload(app: FastifyInstance, control: ReloadControl, running: RunningStore): void {
  const { storeId: store } = running.store;
  serve(app, routes.reload, (request, reply) => reloaded(control, request, reply, (changed, warnings) =>
    ({ store, hash: running.configuration?.hash ?? '', changed, warnings })));
  serve(app, routes.configDiff, async () => {
    const { why: refused, changed, warnings } = await control.compare();
    return { store, changed: [...changed], warnings: [...warnings], refused };
  });
}

function isReady(running: RunningStore): boolean {
  const { admission } = running.store;
  return running.ports.length > 0 && !running.isStopping && admission.usedBytes < admission.acceptBytes;
}

function status(options: AdminHttpOptions, running: RunningStore): StoreStatusAnswer {
  const { store, counters, configuration } = running;
  const nowActive = [...running.connections];
  return {
    role: 'store',
    store_id: store.storeId,
    host: options.label,
    version: options.version,
    pid: process.pid,
    boot_id: store.bootId,
    uptime_seconds: Math.floor(process.uptime()),
    ready: isReady(running),
    stopping: running.isStopping,
    insecure: options.insecure,
    in_register: running.presence?.isNamed ?? null,
    register_away: running.presence?.away ?? '',
    ports: running.ports,
    partitions: store.partitions.count,
    messages: store.entries.count,
    memory: {
      used_bytes: store.admission.usedBytes, live_bytes: store.segments.liveBytes,
      granted_bytes: store.admission.grantedBytes,
      accept_bytes: store.admission.acceptBytes, limit_bytes: store.admission.limitBytes,
    },
    gateways: [...store.accounts()].map((account) => ({
      id: account.id,
      incarnation: account.incarnation,
      active: account.active !== undefined,
      granted_bytes: account.granted,
      connections: nowActive.filter((connection) => connection.gatewayId === account.id)
        .map((connection) => ({ path: connection.path, state: connection.state })),
    })),
    changes: counters.changes,
    ...(configuration === undefined ? {} : { configuration }),
    ...(running.logLosses === undefined ? {} : { log: logAnswerOf(running.logLosses) }),
  };
}

function group(options: AdminHttpOptions, running: RunningStore): GroupAnswer {
  const self: MemberAnswer = {
    id: running.store.storeId, kind: 'store',
    admin: reachableAddress(options.listen.host, running.adminPort) ?? null, away: false, self: true,
  };
  return {
    members: [
      self,
      ...options.gateways().map(
        ({ id, admin }) => (
          { id, kind: 'gateway' as const, admin: admin ?? null, away: false, self: false }
        )
      ),
    ],
  };
}

function partitionPage({ store }: RunningStore, cursor: number, limit: number): StorePartitionPageAnswer {
  const rows: StorePartitionAnswer[] = [];
  let next = 0;
  for (const copy of store.partitions.copies()) {
    if (copy.ordinal <= cursor) continue;
    if (rows.length === limit) return { rows, next_cursor: String(next) };
    rows.push(partitionJson(store, copy));
    next = copy.ordinal;
  }
  return { rows, next_cursor: null };
}

function partitionJson(store: Store, copy: MirroredPartition): StorePartitionAnswer {
  const { partition, fence, isComplete, number, count, bytes } = copy;
  return {
    partition, owner: ownerOf(partition), holder: fence.told?.holder.gatewayId ?? null,
    holder_incarnation: fence.told?.holder.incarnation ?? 0,
    epoch: fence.told?.epoch ?? 0, member: store.isMember(copy), term: fence.term.number,
    complete: isComplete,
    number, digest: digestText(copy.digestA, copy.digestB), messages: count, bytes,
  };
}
