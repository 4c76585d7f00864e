/** One question to an operator, and the line typed. The terminal edits it: Ctrl-C ends the program. */
import { createInterface } from 'node:readline';

/** '' when the input ends without an answer. */
export function ask(
  question: string, input: NodeJS.ReadableStream, output: NodeJS.WritableStream,
): Promise<string> {
  return new Promise((resolve) => {
    const lines = createInterface({ input, terminal: false });
    let answer: string | undefined;
    lines.once('line', (line) => {
      answer = line;
      lines.close();
    });
    lines.once('close', () => {
      // Who ends the input types no line end.
      if (answer === undefined) output.write('\n');
      resolve(answer ?? '');
    });
    output.write(question);
  });
}
