// Command probe asks a gRPC server for its health again and again, with the kubelet's own prober, and prints one
// line for each answer: the kubelet's verdict and its message. It ends with its standard input.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/kubernetes/pkg/probe"
	grpcprobe "k8s.io/kubernetes/pkg/probe/grpc"
)

func main() {
	host := flag.String("host", "127.0.0.1", "where the container is")
	port := flag.Int("port", 0, "grpc.port of the probe")
	service := flag.String("service", "", "grpc.service of the probe")
	period := flag.Duration("period", time.Second, "periodSeconds of the probe")
	timeout := flag.Duration("timeout", time.Second, "timeoutSeconds of the probe")
	flag.Parse()

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	prober := grpcprobe.New()
	for ; ; time.Sleep(*period) {
		result, message, err := prober.Probe(*host, *service, *port, *timeout, grpcprobe.ProbeOptions{})
		if err != nil {
			result, message = probe.Unknown, err.Error()
		}
		fmt.Printf("%s\t%s\n", result, message)
	}
}
