/**
 * The admin port of a gateway that waits for its register: alive, not ready, and why. Nothing else is known
 * yet, so all other addresses are refused with the same words. server.ts takes the port over then.
 */
import { probeRoutes } from '../../admin-api/routes.js';
import { refuse } from '../../platform/node/admin-guard.js';
import { adminApp, listenAs, serve } from '../../platform/node/admin-server.js';
import type { AdminOptions, RunningAdmin } from '../../platform/node/admin-server.js';

/** Rejects when the address can't be bound. `why`: the register's state. */
export async function startWaitingAdmin(options: AdminOptions, why: () => string): Promise<RunningAdmin> {
  const text = (): string => `the gateway waits for its register, with its port for mail closed: ${why()}`;
  const app = adminApp(options, probeRoutes, (reply) => refuse(reply, 503, text()));
  serve(app, probeRoutes.healthz, (_request, reply) => reply.type('text/plain').send('ok\n'));
  serve(app, probeRoutes.readyz, (_request, reply) => reply.type('text/plain').code(503).send(`${text()}\n`));
  return listenAs(app, options);
}
