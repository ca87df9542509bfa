/** Condition message after a failed phase: the details are in the log, for operators. */
export const SeeLogs = 'Please check controller logs for errors'
