// Command caller calls Decide at a fixed rate until standard input ends: `caller [--wait-for-ready] ADDRESS RATE`.
// It prints `calling` when it has had its first answer, and a tally at the end.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/retryd/retryd/clients/go/retrydv1"
)

const deadline = 30 * time.Second

type failure struct {
	Text    string `json:"text"`
	BeganMs int64  `json:"began_ms"`
	EndedMs int64  `json:"ended_ms"`
}

func main() {
	waitForReady := flag.Bool("wait-for-ready", false, "wait for a connection")
	flag.Parse()
	rate, err := strconv.ParseFloat(flag.Arg(1), 64)
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(flag.Arg(0),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(*waitForReady)))
	if err != nil {
		log.Fatal(err)
	}
	decide := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		_, err := retrydv1.NewRetryServiceClient(conn).Decide(ctx, &retrydv1.RetryContext{
			Tenant: "rollout", Operation: "go", AttemptsMade: 1, BodyReplayable: true,
			Failure: &retrydv1.Failure{Status: &retrydv1.Failure_GrpcCode{GrpcCode: uint32(codes.ResourceExhausted)}},
		})
		return err
	}
	if err := decide(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("calling")

	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	var (
		inFlight sync.WaitGroup
		lock     sync.Mutex
		calls    int
		failed   = []failure{}
	)
	due := time.NewTicker(time.Duration(float64(time.Second) / rate))
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-due.C:
			calls++
			inFlight.Go(func() {
				began := time.Now()
				if err := decide(); err != nil {
					lock.Lock()
					defer lock.Unlock()
					failed = append(failed, failure{
						Text:    fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message()),
						BeganMs: began.UnixMilli(),
						EndedMs: time.Now().UnixMilli(),
					})
				}
			})
		}
	}
	inFlight.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"calls": calls, "failed": failed}); err != nil {
		log.Fatal(err)
	}
}
