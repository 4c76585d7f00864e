/**
 * Why the register's file can't be used, with a text for the operator that says what to do.
 * Nothing was changed then.
 */

/**
 * in use: another process has it · damaged: not as it was written · newer: of a newer version · unreadable:
 * the system does not let us.
 */
export type RegisterFileTrouble = 'in use' | 'damaged' | 'newer' | 'unreadable';

export class RegisterFileError extends Error {
  override readonly name = 'RegisterFileError';
  readonly trouble: RegisterFileTrouble;

  constructor(trouble: RegisterFileTrouble, text: string) {
    super(text);
    this.trouble = trouble;
  }
}
