package interop

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func reasonOf(err error) metav1.StatusReason { return apierrors.ReasonForError(err) }

// hasCause returns whether the error is a Status that has the cause.
func hasCause(err error, cause metav1.CauseType) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.HasStatusCause(err, cause)
}
