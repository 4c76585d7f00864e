/**
 * The admin port of a gateway that waits for its register: alive, not ready, and why. Nothing else is known
 * yet, so all other addresses are refused with the same words. server.ts takes the port over then.
 */
import { probeRoutes } from '../../admin-api/routes.js';
import { refuse } from '../../platform/node/admin-guard.js';
import { listenAs, serve } from '../../platform/node/admin-server.js';
import type { AdminOptions, RunningAdmin } from '../../platform/node/admin-server.js';
import type { EventLog } from '../../platform/ports.js';

const probes = { healthz: probeRoutes.healthz, readyz: probeRoutes.readyz };

/** Rejects when the address can't be bound. `why`: the register's state. */
export async function startWaitingAdmin(
  options: AdminOptions, why: () => string, log: EventLog,
): Promise<RunningAdmin> {
  const text = (): string => `the gateway waits for its register, with its port for mail closed: ${why()}`;
  return listenAs(options, {
    probes, api: {},
    addProbes: (app) => {
      serve(app, probes.healthz, (_request, reply) => reply.type('text/plain').send('ok\n'));
      serve(app, probes.readyz, (_request, reply) => reply.type('text/plain').code(503).send(`${text()}\n`));
    },
    addApi: () => undefined,
    notFound: (reply) => refuse(reply, 503, text()),
  }, log);
}
