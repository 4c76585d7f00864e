/** An admin HTTP of a gateway that serves what a test adds, without a port. */
import type { FastifyInstance } from 'fastify';
import { gatewayRoutes } from '../../../../src/admin-api/routes.js';
import { AdminFiles } from '../../../../src/platform/node/admin-files.js';
import { adminApp } from '../../../../src/platform/node/admin-server.js';
import { KeptLog } from './kept-log.js';

export function playedApi(): FastifyInstance {
  return adminApp(gatewayRoutes, new AdminFiles({}, new KeptLog()));
}
