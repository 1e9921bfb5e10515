package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Plays the portable cases of tests/vectors over a connection. */
class VectorsTest {
  private final List<String> failed = new ArrayList<>();
  private int played;

  @Test
  void decideAsTheVectorsSay() {
    for (Vectors vectors : Vectors.load()) {
      List<Vectors.Play> shared = vectors.plays().stream().filter(play -> !play.alone()).toList();
      play(vectors, shared);
      vectors.plays().stream().filter(Vectors.Play::alone).forEach(play -> play(vectors, List.of(play)));
    }
    System.out.println("vectors: " + played + " sequences played");
    assertEquals(List.of(), failed);
  }

  /** All of them against one server. */
  private void play(Vectors vectors, List<Vectors.Play> plays) {
    if (plays.isEmpty()) {
      return;
    }
    ManagedChannel channel = Grpc.newChannelBuilder(
        Testbed.startRetryd(vectors.policy()), InsecureChannelCredentials.create()).build();
    for (Vectors.Play play : plays) {
      played++;
      List<String> differences = new Player(channel, vectors, play).play();
      if (!differences.isEmpty()) {
        failed.add(vectors.name() + ": " + play.caseName() + ": " + differences);
      }
    }
    channel.shutdownNow();
  }
}
