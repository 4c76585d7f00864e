/** The command line as a process of its own, to its end. */
import { ENTRY } from './entry.js';
import { spawn } from 'node:child_process';


/** `interrupted`: Ctrl-C is pressed when that resolves; SIGHUP comes instead if it resolves to that. */
export function twinpost(args: readonly string[], input: string | Uint8Array = '', interrupted?: Promise<unknown>): Promise<{ readonly code: number | null; readonly out: string; readonly error: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [ENTRY, ...args], { stdio: 'pipe' });
    let [out, error] = ['', ''];
    child.stdout.on('data', (bytes: Buffer) => { out += bytes.toString(); });
    child.stderr.on('data', (bytes: Buffer) => { error += bytes.toString(); });
    void interrupted?.then((signal) => child.kill(signal === 'SIGHUP' ? signal : 'SIGINT'));
    child.once('close', (code) => { resolve({ code, out, error }); });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}
