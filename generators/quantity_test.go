package generators_test

import "k8s.io/apimachinery/pkg/api/resource"

func resourceOf(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

func sameQuantity(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }
