/**
 * Whether a partition of this gateway is still to come here: '' none; 'soon' within moments; 'held' when
 * another process hands it back, or a store or the register answers.
 */
export type Expected = '' | 'soon' | 'held';
