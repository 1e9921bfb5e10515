module github.com/retryd/retryd/tests/rollout/callers/go

go 1.26.0

require (
	github.com/retryd/retryd/clients/go v0.0.0
	google.golang.org/grpc v1.85.0
)

replace github.com/retryd/retryd/clients/go => ../../../../clients/go
