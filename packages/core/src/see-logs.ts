/** Condition message for a failure whose details are in the log. */
export const SeeLogs = 'Please check controller logs for errors'
