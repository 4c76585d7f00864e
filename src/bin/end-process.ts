/**
 * The end of a process that has served. process.exit() waits for each lookup of a name that the system has
 * under way: libuv joins its threads, and silent resolvers keep them for half a minute and more
 * (resolv.conf(5)). Nothing runs meanwhile, and a port that is open stays so: clients connect and hear
 * nothing. So a process that looks up a name ends by a signal, which waits for nobody; and so does one of
 * which a thread hangs in a disk (gateway/look/node/log-search.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';

/** In getaddrinfo: lookups of next hops, of stores, of the register's endpoints. */
const LOOKUP = 'GetAddrInfoReqWrap';

/** Of a thread that has not ended (Worker), and of a file at a disk that does not answer (fs/promises). */
const HANGING = ['MessagePort', 'FSReqPromise'];
/** All of them have been told to end, which takes milliseconds on a machine that is not busy. */
const THREADS_MS = 5_000;
const LOOK_MS = 10;

/** As endProcess(), when its threads and files are through, or hang. */
export async function endWithThreads(code: number): Promise<never> {
  const untilMs = performance.now() + THREADS_MS;
  const isHanging = (): boolean => HANGING.some(isUnderWay);
  while (isHanging() && performance.now() < untilMs) await sleep(LOOK_MS);
  if (isHanging()) endBySignal(code);
  endProcess(code);
}

/**
 * All that is to be kept is written by now. In place of exit code 0: SIGTERM, which supervisors take for an
 * end that was asked for (systemd.service(5), SuccessExitStatus); else SIGKILL. Not for an end whose code
 * somebody goes by, as that of a fenced process.
 */
export function endProcess(code: number): never {
  if (isUnderWay(LOOKUP)) endBySignal(code);
  process.exit(code);
}

function isUnderWay(what: string): boolean {
  return process.getActiveResourcesInfo().includes(what);
}

function endBySignal(code: number): void {
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL');
}
