/** A gRPC client interceptor that repeats failed calls when retryd allows it. */
package io.github.retryd.client;
