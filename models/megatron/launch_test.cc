#include "models/megatron/launch.h"

#include <catch2/catch.hpp>
#include <map>

#include "models/megatron/arguments.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

using Catch::Matchers::Contains;

// Returns a script whose last lines launch the program.
std::string script(const std::string& launch) {
  return "#!/bin/bash\nGPUS_PER_NODE=8\nNNODES=4\nMODEL_ARGS=(\n    --num-layers 24\n"
         "    --hidden-size 2048\n    --num-attention-heads 16\n    --seq-length 2048\n"
         "    --max-position-embeddings 2048\n    --vocab-size 50304\n    --micro-batch-size 4\n"
         "    --global-batch-size 256\n)\nLAYOUT=\" \\\n  --bf16 \\\n"
         "  --tensor-model-parallel-size 4 \"\n" +
         launch + "\n";
}

std::map<std::string, std::string> keys(const std::string& text, const Variables& given = {}) {
  const Arguments arguments = decode(text, "train.sh", given);
  return {arguments.what_if.begin(), arguments.what_if.end()};
}

TEST_CASE("launches: no launcher loses the arguments of its program") {
  const std::string program = "pretrain_gpt.py ${MODEL_ARGS[@]} $LAYOUT";
  const std::string plain = "pretrain_gpt.py ${MODEL_ARGS[*]} $LAYOUT";
  const std::string launches[] = {
      "torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES " + program,
      "srun --nodes=4 torchrun --nproc_per_node 8 --nnodes 4 " + program,
      "mpirun -np 32 python " + program,
      "mpirun -np 32 python launcher.py --nodes 4 -- " + program,
      "mpirun -np $((NNODES*GPUS_PER_NODE)) numactl -l python3 -u " + program,
      "deepspeed --num_nodes 4 --num_gpus 8 " + program,
      "srun bash -c \"torchrun --nproc_per_node 8 --nnodes 4 " + plain + "\"",
      "CMD=\"python -m torch.distributed.run --nproc_per_node 8 --nnodes 4 " + plain +
          "\"\neval ${CMD} 2>&1 | tee log.txt",
      "LAUNCHER=\"torchrun --nproc_per_node 8 --nnodes 4\"\nnohup $LAUNCHER " + program + " &",
      "run() {\n  local n=$1\n  torchrun --nproc_per_node 8 --nnodes $n " + program + "\n}\nrun 4",
      "if [ $NNODES -eq 4 ]; then\n  torchrun --nproc_per_node 8 --nnodes 4 " + program +
          "\nelse\n  torchrun other.py\nfi",
      "case $NNODES in\n  4|5) N=4 ;;\n  *) N=9 ;;\nesac\n"
      "torchrun --nproc_per_node 8 --nnodes ${N:-2} " +
          program,
      "mkdir -p logs && \\\ntorchrun --nproc_per_node 8 --nnodes 4 " + program,
      "accelerate launch --num_processes 32 --num_machines 4 " + program,
      "srun -N 4 --ntasks-per-node=8 numactl -N 0 python -u " + program,
      "srun -n 32 nice -n 10 python -u " + program,
      "jsrun -n 8 -a 4 -g 4 python " + program,
      "torchrun --nproc_per_node 8 --nnodes 4:4 " + program,
      "torchrun --nproc_per_node 8 --nnodes 4 -m megatron.pretrain_gpt ${MODEL_ARGS[@]} $LAYOUT",
      "for host in a b c d; do ssh $host \"cd /w; torchrun --nproc_per_node 8 --nnodes 4 " + plain +
          "\" & done",
      "sbatch --nodes=4 --wrap \"srun --ntasks-per-node=8 python " + plain + "\"",
      "srun -N 4 bash <<EOF\ntorchrun --nproc_per_node 8 --nnodes 4 " + plain + "\nEOF",
      "sbatch --nodes=4 <<EOT\n#!/bin/bash\nsrun --ntasks-per-node=8 -N 4 python " + plain +
          "\nEOT",
      "read -r -d '' MORE <<EOF\n${LAYOUT}\nEOF\n"
      "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py ${MODEL_ARGS[@]} $MORE",
      "MORE=$(cat <<'EOF'\n--bf16 --tensor-model-parallel-size 4\nEOF\n)\n"
      "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py ${MODEL_ARGS[@]} $MORE"};
  for (const std::string& launch : launches) {
    INFO(launch);
    const auto read = keys(script(launch));
    CHECK(read.at("tp") == "4");
    CHECK(read.at("precision") == "bf16");
    CHECK(read.at("global_batch") == "256");
    CHECK(read.at("gpus") == "32");
  }
}

TEST_CASE("launches: srun starts the tasks of the job that #SBATCH lines ask for") {
  const std::string srun = "srun python -u pretrain_gpt.py ${MODEL_ARGS[@]} $LAYOUT";
  for (const char* lines :
       {"#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n", "#SBATCH -N4 --ntasks-per-node 8\n",
        "#SBATCH --ntasks=32 --gpus-per-task=1\n", "#SBATCH -n 32\n"}) {
    INFO(lines);
    CHECK(keys(script(lines + srun)).at("gpus") == "32");
  }
  CHECK(keys(script("#SBATCH -N 4\n#SBATCH --ntasks-per-node=4\n"
                    "srun --ntasks-per-node=8 python pretrain_gpt.py ${MODEL_ARGS[@]} $LAYOUT"))
            .at("gpus") == "32");
  CHECK(keys(script("#SBATCH --nodes=4 --gres=gpu:a100:8\ntorchrun --nproc_per_node "
                    "$SLURM_GPUS_ON_NODE --nnodes $SLURM_NNODES pretrain_gpt.py "
                    "${MODEL_ARGS[@]} $LAYOUT"))
            .at("gpus") == "32");
}

TEST_CASE("launches: arguments that another command prints are refused by its name") {
  CHECK_THROWS_WITH(keys(script("echo --bf16 | xargs torchrun --nproc_per_node 8 pretrain_gpt.py "
                                "${MODEL_ARGS[@]}")),
                    Contains("xargs adds arguments that another command prints"));
}

TEST_CASE("launches: a variable without a value is refused by its name, and can be given") {
  const std::string text =
      script("python pretrain_gpt.py ${MODEL_ARGS[@]} --pipeline-model-parallel-size $1");
  CHECK_THROWS_WITH(keys(text), Contains("train.sh:17: --pipeline-model-parallel-size: $1 has") &&
                                    Contains("--set-var 1=VALUE"));
  CHECK(keys(text, {{"1", "2"}}).at("pp") == "2");
  CHECK_THROWS_WITH(keys(text, {{"STAGES", "2"}}),
                    Contains("'STAGES' is not a variable of train.sh"));
}

TEST_CASE(
    "launches: torchrun's default is one node, and positional parameters may have several digits") {
  const std::string program = "pretrain_gpt.py ${MODEL_ARGS[@]} $LAYOUT";
  CHECK(keys(script("torchrun --nproc_per_node 8 " + program)).at("gpus") == "8");
  const std::string text =
      script("torchrun --nproc_per_node 8 " + program + " --train-iters ${10}");
  CHECK(keys(text, {{"1", "7"}, {"10", "500"}}).at("steps") == "500");
}

// As in Megatron-DeepSpeed's transformer.py, whose forks set gates by --glu-activation.
TEST_CASE("launches: Megatron-DeepSpeed's attention is fused if a kernel is selected") {
  const std::string program = "deepspeed --num_nodes 4 pretrain_gpt.py ${MODEL_ARGS[@]} $LAYOUT";
  CHECK(keys(script(program + " --deepspeed")).at("attention") == "unfused");
  CHECK_FALSE(keys(script(program + " --deepspeed --use-flash-attn-v2")).contains("attention"));
  CHECK_FALSE(keys(script(program)).contains("attention"));
  CHECK(keys(script(program + " --transformer-impl local")).at("attention") == "unfused");
  const auto model = [&](const char* more) { return decode(script(program + more), "f").model; };
  // The default width is 4 h without --swiglu (BigScience's fork 007719a, arguments.py).
  CHECK(model(" --glu-activation swiglu") == model(" --swiglu --ffn-hidden-size 8192"));
  CHECK(model(" --glu-activation swiglu") != model(""));
}

TEST_CASE("launches: names assigned in a branch on an unset variable have no value") {
  const std::string text = script(
      "PP=1\nif [ \"$BIG\" = yes ]; then PP=4; fi\n"
      "python pretrain_gpt.py ${MODEL_ARGS[@]} --pipeline-model-parallel-size $PP");
  CHECK_THROWS_WITH(keys(text), Contains("$PP has no value"));
  CHECK(keys(text, {{"BIG", "yes"}}).at("pp") == "4");
  CHECK(keys(text, {{"BIG", "no"}}).at("pp") == "1");
}

TEST_CASE("launches: a name that is a list in one branch and a text in the other has no value") {
  const std::string text = "case $MODE in\n  auto) A=() ;;\n  *) A=x ;;\nesac\n" +
                           script(
                               "torchrun --nproc_per_node 8 pretrain_gpt.py "
                               "${MODEL_ARGS[@]} $LAYOUT");
  CHECK(keys("A=()\n" + text).at("tp") == "4");
  CHECK(keys("A=y\n" + text).at("tp") == "4");
}

TEST_CASE("launches: programs with other models than Megatron-LM's are refused by name") {
  for (const char* program : {"pretrain_mamba", "pretrain_hybrid", "pretrain_vision_classify",
                              "pretrain_retro", "pretrain_ict", "pretrain_t5", "pretrain_vlm"}) {
    const std::string launch = std::string("torchrun --nproc_per_node 8 tools/") + program + ".py ";
    CHECK_THROWS_WITH(keys(script(launch + "${MODEL_ARGS[@]}")),
                      Contains(std::string("train.sh:17: ") + program + ".py trains a model of"));
  }
  // These program names only contain the name of a refused one.
  for (const char* program : {"pretrain_predict", "pretrain_gpt5", "pretrain_bert", "train_own"})
    CHECK(keys(script(std::string("torchrun ") + program + ".py ${MODEL_ARGS[@]}"))
              .at("micro_batch") == "4");
}

TEST_CASE("launches: a value for a script without a launch is refused, not ignored") {
  const std::string lists = "#!/bin/bash\nTP=2\nARGS=(\n--num-layers 2\n)\n";
  CHECK_THROWS_WITH(keys(lists, {{"TP", "4"}}), Contains("--set-var: train.sh does not launch"));
  CHECK_THROWS_WITH(keys("--num-layers TP", {{"TP", "4"}}), Contains("has no variables"));
  std::vector<Finding> findings;
  launch_arguments(lists, "train.sh", {}, findings);
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().code == "no-launch");
}

TEST_CASE("launches: a comment ends a command, and the following arguments are named") {
  const Arguments arguments = decode(
      script("python pretrain_gpt.py ${MODEL_ARGS[@]} \\\n# --bf16 \\\n  --fp16"), "train.sh");
  REQUIRE(arguments.findings.size() == 1);
  CHECK(arguments.findings.front().code == "argument-not-passed");
  CHECK_THAT(arguments.findings.front().message, Contains("train.sh:19: --fp16"));
}

TEST_CASE("launches: Megatron-DeepSpeed's JSON, recomputation and 1-bit optimizers") {
  const Arguments arguments =
      decode(script("cat <<EOT > ./ds.$SLURM_JOBID.json\n{\"zero\": $NNODES}\nEOT\n"
                    "deepspeed pretrain_gpt.py ${MODEL_ARGS[@]} --fp16 --deepspeed "
                    "--deepspeed_config ./ds.$SLURM_JOBID.json --checkpoint-activations "
                    "--optimizer onebit-lamb --train-samples 220_000_000"),
             "train.sh");
  const std::map<std::string, std::string> read(arguments.what_if.begin(), arguments.what_if.end());
  CHECK(arguments.config == "{\"zero\": 4}\n");
  CHECK(read.at("framework") == "deepspeed");
  CHECK(read.at("recompute") == "full");
  CHECK(read.at("optimizer") == "onebit_lamb");
  CHECK(read.at("samples") == "220000000");
}

TEST_CASE("launches: a script of other programs is refused with the program's name") {
  std::vector<Finding> findings;
  const auto read = [&](const char* launch) {
    return launch_arguments(std::string("#!/bin/bash\n") + launch + "\n", "train.sh", {}, findings);
  };
  CHECK_THROWS_WITH(read("deepspeed --num_nodes 4 deepy.py train.py -d configs 125M.yml"),
                    Contains("train.sh:2: starts deepy.py") && Contains("GPT-NeoX"));
  CHECK_THROWS_WITH(read("accelerate launch run_clm.py --fp16"), Contains("starts run_clm.py"));
}

TEST_CASE("launches: files of another kind are named") {
  const std::pair<const char*, const char*> files[] = {
      {"apiVersion: v1\nkind: Job\n# pretrain_gpt.py --num-layers 2\n", "a manifest of Kubernetes"},
      {"import subprocess\nsubprocess.run(['pretrain_gpt.py'])\n", "a Python program"},
      {"FROM ubuntu\nCMD torchrun pretrain_gpt.py\n", "a recipe of a container"}};
  for (const auto& [text, words] : files) CHECK_THROWS_WITH(keys(text), Contains(words));
  CHECK_THROWS_WITH(keys("#!/bin/bash\ntorchrun pretrain_gpt.py --yaml-cfg a.yaml\n"),
                    Contains("--yaml-cfg: the arguments are in this file"));
}

}  // namespace
}  // namespace lambcast::megatron
