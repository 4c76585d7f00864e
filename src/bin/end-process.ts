/**
 * The end of a process that has served. process.exit() waits for each lookup of a name that the system has
 * under way: libuv joins its threads, and silent resolvers keep them for half a minute and more
 * (resolv.conf(5)). Nothing runs meanwhile, and a port that is open stays so: clients connect and hear
 * nothing. So a process that looks up a name ends by a signal, which waits for nobody.
 */

/** In getaddrinfo: lookups of next hops, of stores, of the register's endpoints. */
const LOOKUP = 'GetAddrInfoReqWrap';

/**
 * All that is to be kept is written by now. In place of exit code 0: SIGTERM, which supervisors take for an
 * end that was asked for (systemd.service(5), SuccessExitStatus); else SIGKILL. Not for an end whose code
 * somebody goes by, as that of a fenced process.
 */
export function endProcess(code: number): never {
  if (process.getActiveResourcesInfo().includes(LOOKUP)) {
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
  }
  process.exit(code);
}
