/** What an error says, of whatever was thrown: for the log and for who reads one line. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
