# A folder whose weights are not those of its config.json: each is named, and no run is left behind.
leanstep init demo --out good --dtype f32 || exit
mkdir fewer more shape index
cp good/model.safetensors fewer; sed 's/"num_hidden_layers": 4/"num_hidden_layers": 5/' good/config.json > fewer/config.json
cp good/model.safetensors more; sed 's/"num_hidden_layers": 4/"num_hidden_layers": 3/' good/config.json > more/config.json
cp good/model.safetensors shape; sed 's/"intermediate_size": 352/"intermediate_size": 350/' good/config.json > shape/config.json
cp good/config.json index
echo '{"weight_map": {"model.norm.weight": "../good/model.safetensors"}}' > index/model.safetensors.index.json
for folder in fewer more shape index; do
    leanstep train $folder --data $TEXT --seq 64 --steps 1 --out run > log.txt
    echo "exit status $?"
done
sed 's/"F32"/"I32"/g' good/model.safetensors > more/model.safetensors
cp good/config.json more
leanstep train more --data $TEXT --seq 64 --steps 1 --out run > log.txt
ls
