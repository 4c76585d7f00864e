/**
 * For tests that reset and close many sockets with bytes under way: their process ends without Node's own cleanup of
 * handles. Once in many runs that cleanup, of Node 20, never came to an end though nothing was open any more: all
 * tests had passed, and the process stood at full load (perf: Environment::CleanupHandles in uv_run).
 *
 * Nothing that a test leaves open is hidden by it: 'beforeExit' comes only when nothing is left to do.
 */
process.once('beforeExit', () => {
  // The last of the listeners: those that end processes of a test come before.
  process.once('exit', () => { process.exit(); });
});
