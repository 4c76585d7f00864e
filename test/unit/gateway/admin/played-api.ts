/** An admin HTTP of a gateway that serves what a test adds, without a port. */
import type { FastifyInstance } from 'fastify';
import { gatewayRoutes } from '../../../../src/admin-api/routes.js';
import { adminApp } from '../../../../src/platform/node/admin-server.js';

export function playedApi(): FastifyInstance {
  return adminApp({ host: '127.0.0.1', port: 0 }, gatewayRoutes);
}
